// Follows the workloads of the clusters: by the events of the cloud API, docs/reference.md "Cloud events",
// and by looking again while a person sees them. Replicas that others change are no events.
import type { Client } from '../../client/create_client.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { CLOUD_EVENT_TYPES } from '../../protocol/cloud_events.ts';
import type { Message } from './model.ts';
import { isRefusal, troubleText } from './trouble.ts';

/** After these the list may be another one. */
const TYPES = CLOUD_EVENT_TYPES.filter((type) => !/^(tether|events)\./.test(type));
/** A list may have 10,000 workloads: it is read at most this often, however many events come. */
const REFRESH_MS = 1_000;
/** The pause between two looks, and the least one as a multiple of what the last look took. */
const LOOK_MS = 3_000;
const LOOK_SHARE = 20;

export interface WorkloadSight {
  tell: (message: Message) => void;
  /** Whether a person sees workloads now. */
  isInSight: () => boolean;
  signal: AbortSignal;
}

/**
 * Tells the workloads, and again when something has happened to them, until `signal` aborts or they are
 * denied. Without them, everything else is shown all the same.
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
      // A refusal is no matter of time.
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
