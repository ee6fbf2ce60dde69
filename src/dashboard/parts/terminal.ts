// A terminal in the page. The page loads this separate file with the first terminal.
import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { WebLinksAddon } from '@xterm/addon-web-links';
import { WebglAddon } from '@xterm/addon-webgl';
import { type ITheme, Terminal } from '@xterm/xterm';
import { sizeInWindow } from '../../protocol/terminal.ts';
import { guardTerminal } from '../../protocol/terminal_guards.ts';
import { strictDocument, withStrictStyles } from './strict_document.ts';

/** The callbacks of a terminal. */
export interface TerminalListener {
  /** Called with typed or pasted input. */
  onInput: (text: string | Uint8Array) => void;
}

/** A terminal in the page. */
export interface PageTerminal {
  /** Resolves when the bytes are drawn. */
  write(bytes: Uint8Array): Promise<void>;
  /** Clears it before a new screen arrives. */
  reset(): void;
  /** Takes the size of the program's terminal. */
  resize(cols: number, rows: number): void;
  /** The size that would fill its element, as far as a terminal can; null: it is not visible. */
  fittingSize(): { cols: number; rows: number } | null;
  focus(): void;
  /** Selects the next match of `text`; returns whether there is one. */
  find(text: string, backwards: boolean): boolean;
  /** The rows of the screen, without trailing blanks. */
  screenText(): string;
  setTheme(theme: ITheme): void;
  dispose(): void;
}

const SCROLLBACK_LINES = 5_000;
const LEAST_CONTRAST = 4.5;

/** Opens a program's link in a new tab if it is an http or https URL and Ctrl or ⌘ is held. */
function openLink(event: MouseEvent, address: string): void {
  if (!(event.ctrlKey || event.metaKey) || !/^https?:\/\//i.test(address)) return;
  window.open(address, '_blank', 'noopener,noreferrer');
}

/** Copies the selection with Ctrl+Shift+C; returns whether the terminal must handle the key itself. */
function handlesKey(terminal: Terminal, event: KeyboardEvent): boolean {
  const isCopy = event.ctrlKey && event.shiftKey && event.code === 'KeyC';
  if (!isCopy) return true;
  // Browsers use this key for their developer tools.
  event.preventDefault();
  if (event.type === 'keydown' && terminal.hasSelection()) document.execCommand('copy');
  return false;
}

/** The characters of a pasted text that would press keys. ESC could also end a bracketed paste. */
const PASTED_KEYS = /[^\P{Cc}\t\n\r]/gu;

/** Pastes without keys, so that text copied from somewhere else cannot run a command. */
function pasteText(terminal: Terminal, event: ClipboardEvent): void {
  event.preventDefault();
  event.stopPropagation();
  terminal.paste(event.clipboardData?.getData('text/plain').replace(PASTED_KEYS, '') ?? '');
}

function addRenderer(terminal: Terminal): void {
  try {
    const renderer = new WebglAddon();
    renderer.onContextLoss(() => renderer.dispose());
    terminal.loadAddon(renderer);
  } catch {
    // Without WebGL, the terminal renders as DOM elements.
  }
}

/** Ends the WebGL contexts in `parent`: a browser keeps 16, and counts those of removed elements. */
function loseContexts(parent: HTMLElement): void {
  for (const canvas of parent.querySelectorAll('canvas'))
    canvas.getContext('webgl2')?.getExtension('WEBGL_lose_context')?.loseContext();
}

function screenText({ buffer, rows }: Terminal): string {
  const { active } = buffer;
  const lines = Array.from({ length: rows }, (_, row) =>
    (active.getLine(active.baseY + row)?.translateToString(true) ?? '').trimEnd(),
  );
  return lines.join('\n').replace(/\n+$/, '');
}

function createTerminal(theme: ITheme, fontSize: number): Terminal {
  return new Terminal({
    documentOverride: strictDocument,
    allowProposedApi: true,
    cursorBlink: false,
    fontFamily: 'ui-monospace, "Cascadia Mono", Menlo, "DejaVu Sans Mono", monospace',
    fontSize,
    linkHandler: { activate: openLink, allowNonHttpProtocols: false },
    minimumContrastRatio: LEAST_CONTRAST,
    scrollback: SCROLLBACK_LINES,
    screenReaderMode: false,
    theme,
  });
}

/** Opens a terminal that fills `parent`. */
export function openTerminal(
  parent: HTMLElement,
  { onInput }: TerminalListener,
  theme: ITheme,
  fontSize: number,
): PageTerminal {
  const terminal = createTerminal(theme, fontSize);
  guardTerminal(terminal);
  const fit = new FitAddon();
  const search = new SearchAddon();
  for (const addon of [fit, search, new WebLinksAddon(openLink)]) terminal.loadAddon(addon);
  withStrictStyles(() => terminal.open(parent));
  addRenderer(terminal);
  const onPaste = (event: ClipboardEvent): void => pasteText(terminal, event);
  parent.addEventListener('paste', onPaste, true);
  terminal.attachCustomKeyEventHandler((event) => handlesKey(terminal, event));
  terminal.onData(onInput);
  terminal.onBinary((text) => onInput(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  return {
    write: (bytes) =>
      new Promise((resolve) => {
        terminal.write(bytes, resolve);
      }),
    reset: () => terminal.reset(),
    // After the output that has arrived at the size before.
    resize: (cols, rows) => terminal.write('', () => terminal.resize(cols, rows)),
    fittingSize: () => {
      const size = fit.proposeDimensions();
      return size ? sizeInWindow(size) : null;
    },
    focus: () => terminal.focus(),
    find: (text, backwards) => (backwards ? search.findPrevious(text) : search.findNext(text)),
    screenText: () => screenText(terminal),
    setTheme: (colours) => {
      terminal.options.theme = colours;
    },
    dispose: () => {
      parent.removeEventListener('paste', onPaste, true);
      loseContexts(parent);
      terminal.dispose();
    },
  };
}
