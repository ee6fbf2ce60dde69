// The theme: light, dark, or that of the system. The choice survives a reload.
import { effect, signal } from '@preact/signals';

const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'berth.theme';
const stored = localStorage.getItem(KEY);

/** The chosen theme. */
export const theme = signal<Theme>(THEMES.find((one) => one === stored) ?? 'system');

const systemDark = matchMedia('(prefers-color-scheme: dark)');
/** Increases when colours change, so that terminals and charts draw again. */
export const themeChanges = signal(0);

/** The theme after the chosen one, for a button that cycles through all themes. */
export const nextTheme = (): Theme => THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length] ?? 'system';

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  if (theme.value === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
  themeChanges.value = themeChanges.peek() + 1;
});
systemDark.addEventListener('change', () => {
  themeChanges.value += 1;
});

let probe: HTMLElement | undefined;

/** The colour of a design token in the current theme, such as `rgb(20, 105, 43)`. */
export function tokenColour(token: string): string {
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${token})`;
  return getComputedStyle(probe).color;
}
