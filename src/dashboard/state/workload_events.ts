// The states of workloads as cloud events tell them, so that nothing is read again to show them.
import { computed, effect } from '@preact/signals';
import type { Workload } from '../../client/browser.ts';
import { logCount } from './place.ts';
import { client, hasCloudToken } from './session.ts';
import { isTabVisible } from './visible_tab.ts';
import type { WorkloadPages } from './workload_pages.ts';

type State = Workload['state'];

const STATES: readonly State[] = ['awake', 'waking', 'sleeping', 'asleep'];
const TYPES = STATES.map((state) => `workload.${state}` as const);
/** The least time between two draws of what events tell, however many arrive. */
const DRAW_MS = 250;
/**
 * Browsers open six connections to a host, for all tabs together. With more logs than these, the stream of
 * cloud events would take the last one, and requests would wait for ever.
 */
const MAX_LOGS = 2;

/** The id of the last event seen, after which the stream continues; null: not read yet. */
let lastId: number | null = null;

/** Notes the newest event, once. The workloads are read only after it, so that no change is missed. */
export async function noteLastEvent(): Promise<void> {
  if (lastId !== null) return;
  for await (const [newest] of client.cloud.historyPages({ limit: 1 })) {
    lastId = newest?.id ?? 0;
    break;
  }
}

let told = new Map<string, State>();
let isDrawing = false;

/** Shows what was told, and then calls `onTold` with it. */
function drawSoon(pages: WorkloadPages, onTold: (states: ReadonlyMap<string, State>) => void): void {
  if (isDrawing) return;
  isDrawing = true;
  setTimeout(() => {
    isDrawing = false;
    const states = told;
    told = new Map();
    pages.setStates(states);
    onTold(states);
  }, DRAW_MS);
}

async function followStates(
  pages: WorkloadPages,
  onTold: (states: ReadonlyMap<string, State>) => void,
  signal: AbortSignal,
): Promise<void> {
  await noteLastEvent();
  const events = client.cloud.events({
    types: TYPES,
    after: lastId ?? 0,
    // The daemon may be away when the tab becomes visible.
    reconnect: 'always',
    signal,
  });
  for await (const event of events) {
    if (event.type === 'stream.reset') {
      lastId = event.oldest - 1;
      pages.distrust();
      continue;
    }
    lastId = event.id;
    const state = STATES.find((one) => event.type === `workload.${one}`);
    if (event.workload_id === null || state === undefined) continue;
    told.set(event.workload_id, state);
    drawSoon(pages, onTold);
  }
}

/**
 * Keeps the states of `pages` up to date for as long as the page lives: while the tab is visible, has a cloud
 * token, and has a connection to spare. Calls `onTold` with the new states, at most four times a second.
 */
export function followWorkloadStates(
  pages: WorkloadPages,
  onTold: (states: ReadonlyMap<string, State>) => void,
): void {
  const mayFollow = computed(() => hasCloudToken.value && isTabVisible.value && logCount.value <= MAX_LOGS);
  effect(() => {
    if (!mayFollow.value) return undefined;
    const end = new AbortController();
    // A token that may not see events still reads the lists, in turn.
    followStates(pages, onTold, end.signal).catch(() => {});
    return () => end.abort();
  });
}
