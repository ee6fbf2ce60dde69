// Follows the workloads of the clusters: by the events of the cloud API, docs/reference.md "Cloud events",
// and by polling while the screen shows them, because other programs' changes of replicas cause no events.
import type { Client } from '../../client/create_client.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { CLOUD_EVENT_TYPES } from '../../protocol/cloud_events.ts';
import type { Message } from './model.ts';
import { isRefusal, troubleText } from './trouble.ts';

/** The events that may change the list. */
const TYPES = CLOUD_EVENT_TYPES.filter((type) => !/^(tether|events)\./.test(type));
/** The least interval between two reads of the list on events: a list may have 10,000 workloads. */
const REFRESH_MS = 1_000;
/** The pause between two polls, and its least length as a multiple of the time that the last read took. */
const LOOK_MS = 3_000;
const LOOK_SHARE = 20;

export interface WorkloadSight {
  tell: (message: Message) => void;
  /** Whether the screen shows workloads now. */
  isInSight: () => boolean;
  signal: AbortSignal;
}

/**
 * Reports the workloads, and again after events on them, until `signal` aborts or access to them is denied.
 * The rest of the interface works without them.
 */
export async function followWorkloads(client: Client, sight: WorkloadSight): Promise<void> {
  const { tell, isInSight, signal } = sight;
  let trouble = '';
  let nextLook: NodeJS.Timeout | undefined;
  const say = (error: unknown): void => {
    const text = `workloads: ${troubleText(error)}`;
    if (!signal.aborted && text !== trouble) tell({ kind: 'said', tone: 'bad', text });
    trouble = text;
  };
  const lookLater = (milliseconds: number): void => {
    clearTimeout(nextLook);
    if (signal.aborted) return;
    nextLook = setTimeout(() => (isInSight() ? void refresh() : lookLater(LOOK_MS)), milliseconds);
  };
  const read = async (): Promise<boolean> => {
    const began = performance.now();
    try {
      const workloads = await client.cloud.workloads({ signal });
      trouble = '';
      if (!signal.aborted) tell({ kind: 'workloads', workloads });
    } catch (error) {
      say(error);
      // Retrying does not help against a refusal.
      return isRefusal(error);
    }
    lookLater(Math.max(LOOK_MS, LOOK_SHARE * (performance.now() - began)));
    return true;
  };
  const refresh = createRefresher(read, REFRESH_MS, signal);
  signal.addEventListener('abort', () => clearTimeout(nextLook));
  try {
    const onState = (state: { open: true } | { open: false; error: Error }): void =>
      state.open ? void refresh() : say(state.error);
    const events = client.cloud.events({ types: TYPES, reconnect: 'always', signal, onState });
    for await (const _event of events) void refresh();
  } catch (error) {
    say(error);
  }
}
