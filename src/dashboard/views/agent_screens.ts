// The last lines of the screens of visible agents. The daemon draws a screen for each request, so the page
// requests them one by one, and only of busy agents.
import { type Signal, signal } from '@preact/signals';
import { usageOf } from '../state/daemon.ts';
import { client } from '../state/session.ts';

const LINES_SHOWN = 8;
/** The pause between two rounds. */
const ROUND_MS = 2_000;

const screens = new Map<string, Signal<readonly string[] | null>>();
const watched = new Set<string>();
/** The agents whose screens have not been read since they became visible. */
const unread = new Set<string>();
let isReading = false;

/** The last lines of an agent's screen; null: not read yet. */
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
    // The agent has ended, or its screen takes too long to draw. The card keeps its lines.
  }
}

/** Whether the agent used the CPU at the last measurement. */
const isBusy = (name: string): boolean => (usageOf(name).peek()?.cpu ?? 0) > 0;

async function readRounds(): Promise<void> {
  if (isReading) return;
  isReading = true;
  while (watched.size > 0) {
    for (const name of [...watched]) {
      if (document.hidden || !watched.has(name) || !(unread.delete(name) || isBusy(name))) continue;
      await readScreen(name);
    }
    // Agents that became visible meanwhile do not wait for the next round.
    if (document.hidden || unread.size === 0) await pause(ROUND_MS);
  }
  isReading = false;
}

function leaveSight(name: string): void {
  watched.delete(name);
  unread.delete(name);
}

/** Reads the screen of `name` while `card` is visible. Returns a function that stops it. */
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
