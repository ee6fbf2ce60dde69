// Follows the workloads of the clusters by the events of the cloud API: docs/reference.md "Cloud events".
import type { Client } from '../../client/create_client.ts';
import type { Workload } from '../../client/records.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { CLOUD_EVENT_TYPES } from '../../protocol/cloud_events.ts';
import type { Message } from './model.ts';
import { troubleText } from './trouble.ts';

/** After these the list may be another one. */
const TYPES = CLOUD_EVENT_TYPES.filter((type) => !/^(tether|events)\./.test(type));
/** A list may have 10,000 workloads: it is read at most this often, however many events come. */
const REFRESH_MS = 1_000;
/** Pods become ready one by one and without events: pauses between looks while some are awaited. */
const SETTLE_MS: readonly number[] = [2_000, 4_000, 8_000, 16_000, 32_000];

const isSettled = ({ state, replicas, ready_replicas: ready }: Workload): boolean =>
  state === 'asleep' || ready >= replicas;

/**
 * Tells the workloads, and again when something has happened to them, until `signal` aborts or they are
 * denied. Without them, everything else is shown all the same.
 */
export async function followWorkloads(
  client: Client,
  tell: (message: Message) => void,
  signal: AbortSignal,
): Promise<void> {
  let trouble = '';
  let looks = 0;
  let settling: NodeJS.Timeout | undefined;
  const say = (error: unknown): void => {
    const text = `workloads: ${troubleText(error)}`;
    if (!signal.aborted && text !== trouble) tell({ kind: 'said', tone: 'bad', text });
    trouble = text;
  };
  const read = async (): Promise<void> => {
    clearTimeout(settling);
    let isDone = false;
    try {
      const workloads = await client.cloud.workloads({ signal });
      trouble = '';
      isDone = workloads.every(isSettled);
      if (!signal.aborted) tell({ kind: 'workloads', workloads });
    } catch (error) {
      say(error);
    }
    const pause = SETTLE_MS[looks];
    if (isDone || signal.aborted || pause === undefined) return;
    looks += 1;
    settling = setTimeout(() => void refresh(), pause);
  };
  const refresh = createRefresher(read, REFRESH_MS, signal);
  const readAnew = (): void => {
    looks = 0;
    void refresh();
  };
  signal.addEventListener('abort', () => clearTimeout(settling));
  try {
    const onState = (state: { open: true } | { open: false; error: Error }): void =>
      state.open ? readAnew() : say(state.error);
    const events = client.cloud.events({ types: TYPES, reconnect: 'always', signal, onState });
    for await (const _event of events) readAnew();
  } catch (error) {
    say(error);
  }
}
