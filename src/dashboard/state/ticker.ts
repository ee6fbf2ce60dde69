// The current time, for uptimes. It does not advance in a hidden tab.
import { signal } from '@preact/signals';

const TICK_MS = 1_000;

/** The current time in milliseconds, updated every second. */
export const second = signal(Date.now());
/** The current time in milliseconds, updated every ten seconds. */
export const tenSeconds = signal(Date.now());

setInterval(() => {
  if (document.hidden) return;
  second.value = Date.now();
  if (second.value - tenSeconds.value >= 10 * TICK_MS) tenSeconds.value = second.value;
}, TICK_MS);
