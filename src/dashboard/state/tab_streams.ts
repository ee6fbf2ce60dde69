// When this tab may hold streams of events and logs. A browser opens six connections to a host, for all its
// tabs together, and once streams have taken them, requests wait for ever. So a hidden tab gives its streams
// up while other tabs are open.
import { computed, effect, signal } from '@preact/signals';
import { isTabVisible } from './visible_tab.ts';

/** A tab that was hidden this recently may be back in a moment. */
const REST_MS = 5_000;

/** How long other tabs may take to answer. */
const ANSWER_MS = 1_000;
/** How often a tab without streams asks whether others are still open: one that crashed says no goodbye. */
const LOOK_MS = 10_000;

type Word = 'hello' | 'here' | 'bye';

/** Whether the tab is visible, or was a moment ago. */
const isInUse = signal(isTabVisible.peek());
/** Whether no other tab with this page is known. */
const isAlone = signal(true);

/** Whether the tab may hold streams. */
export const mayStream = computed(() => isInUse.value || isAlone.value);

let resting: ReturnType<typeof setTimeout> | undefined;
isTabVisible.subscribe((isVisible) => {
  clearTimeout(resting);
  if (isVisible) isInUse.value = true;
  else
    resting = setTimeout(() => {
      isInUse.value = false;
    }, REST_MS);
});

/** Reaches the other tabs of this page's origin. */
const tabs = new BroadcastChannel('berth-tabs');
const say = (word: Word): void => tabs.postMessage(word);

let isAnswered = false;

/** Asks which tabs are open; without an answer, this one is alone. */
function lookAround(): void {
  isAnswered = false;
  say('hello');
  setTimeout(() => {
    isAlone.value = !isAnswered;
  }, ANSWER_MS);
}

tabs.onmessage = ({ data }: MessageEvent<Word>) => {
  if (data === 'bye') {
    lookAround();
    return;
  }
  isAnswered = true;
  isAlone.value = false;
  if (data === 'hello') say('here');
};
addEventListener('pagehide', () => say('bye'));
// Also when the browser shows a page again that it had kept.
addEventListener('pageshow', lookAround);
effect(() => {
  if (mayStream.value) return undefined;
  const timer = setInterval(lookAround, LOOK_MS);
  return () => clearInterval(timer);
});

/** Resolves when the tab may hold streams, or `end` aborts. */
function turn(end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = mayStream.subscribe((may) => {
      if (may) queueMicrotask(finish);
    });
    function finish(): void {
      stop();
      end.removeEventListener('abort', finish);
      resolve();
    }
    if (end.aborted) queueMicrotask(finish);
    else end.addEventListener('abort', finish);
  });
}

/**
 * Runs `work` while the tab may hold streams: its signal aborts when it must give them up, and it runs again
 * when it may have them. Resolves when `work` ends by itself, or `end` aborts; rejects as `work` does.
 */
export async function inTurns(end: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  for (;;) {
    await turn(end);
    if (end.aborted) return;
    const own = new AbortController();
    const stop = mayStream.subscribe((may) => {
      if (!may) own.abort();
    });
    const abort = (): void => own.abort();
    end.addEventListener('abort', abort);
    try {
      await work(own.signal);
    } finally {
      stop();
      end.removeEventListener('abort', abort);
    }
    if (!own.signal.aborted) return;
  }
}
