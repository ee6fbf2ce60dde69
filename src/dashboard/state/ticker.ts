// Time that passes, for uptimes. Nothing ticks in a tab that nobody sees.
import { signal } from '@preact/signals';

const TICK_MS = 1_000;

/** Now, in milliseconds, once a second. */
export const second = signal(Date.now());
/** The same, once in ten seconds. */
export const tenSeconds = signal(Date.now());

setInterval(() => {
  if (document.hidden) return;
  second.value = Date.now();
  if (second.value - tenSeconds.value >= 10 * TICK_MS) tenSeconds.value = second.value;
}, TICK_MS);
