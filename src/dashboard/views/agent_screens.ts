// The last lines of the screens of agents in sight. Each is drawn by the daemon when it is asked for, so they
// are asked for one by one, and only of agents that do something.
import { type Signal, signal } from '@preact/signals';
import { usageOf } from '../state/daemon.ts';
import { client } from '../state/session.ts';

const LINES_SHOWN = 8;
/** Between two rounds. */
const ROUND_MS = 2_000;

const screens = new Map<string, Signal<readonly string[] | null>>();
const watched = new Set<string>();
/** Those that have not been read since they came into sight. */
const unread = new Set<string>();
let isReading = false;

/** The end of the screen of an agent; null: not read yet. */
export function screenOf(name: string): Signal<readonly string[] | null> {
  const known = screens.get(name);
  if (known) return known;
  const made = signal<readonly string[] | null>(null);
  screens.set(name, made);
  return made;
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

async function readScreen(name: string): Promise<void> {
  try {
    const { lines } = await client.agentScreen(name);
    const last = lines.findLastIndex((line) => line !== '');
    screenOf(name).value = lines.slice(Math.max(0, last + 1 - LINES_SHOWN), last + 1);
  } catch {
    // It has ended, or takes too long to draw: the card shows what it had.
  }
}

/** Whether it has done anything since the last measurement. */
const isBusy = (name: string): boolean => (usageOf(name).peek()?.cpu ?? 0) > 0;

async function readRounds(): Promise<void> {
  if (isReading) return;
  isReading = true;
  while (watched.size > 0) {
    for (const name of [...watched]) {
      if (document.hidden || !watched.has(name) || !(unread.delete(name) || isBusy(name))) continue;
      await readScreen(name);
    }
    // Those that have come into sight meanwhile do not wait for the next round.
    if (document.hidden || unread.size === 0) await pause(ROUND_MS);
  }
  isReading = false;
}

function leaveSight(name: string): void {
  watched.delete(name);
  unread.delete(name);
}

/** Reads the screen of `name` while `card` is in sight. Returns what ends that. */
export function watchScreen(name: string, card: Element): () => void {
  const sight = new IntersectionObserver(([entry]) => {
    if (entry?.isIntersecting) {
      watched.add(name);
      unread.add(name);
      void readRounds();
    } else leaveSight(name);
  });
  sight.observe(card);
  return () => {
    sight.disconnect();
    leaveSight(name);
  };
}
