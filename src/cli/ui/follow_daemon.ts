// Follows the daemon: its lists, the events that change them, and its workloads. Continues as long as the
// interface is open, even while the daemon is not running.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../client/create_client.ts';
import type { DaemonEvent } from '../../client/records.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { followWorkloads } from './follow_workloads.ts';
import type { Message, ServiceUse } from './model.ts';
import { isRefusal, troubleText } from './trouble.ts';

/** The least interval between two reads of the lists, and between two updates of the statistics. */
const REFRESH_MS = 250;
const RETRY_MS = 1_000;

export interface Followed {
  /**
   * Makes a client with the current settings. `address`: where the daemon is now, also after its restart.
   * `hasClusters`: whether clusters may be registered now; otherwise, no request may make the daemon load its
   * cloud part.
   */
  connect: () => Promise<{ client: Client; address: () => string; hasClusters: () => boolean }>;
  /** Called with the client of each connection. */
  connected: (client: Client) => void;
  tell: (message: Message) => void;
  /** Whether the screen shows workloads now. */
  isInSight: () => boolean;
  signal: AbortSignal;
}

const subjectOf = ({ data }: DaemonEvent): string => ('name' in data ? data.name : '');

/** Combines frequent events into one message at a time. */
function gatherer({ tell, signal }: Followed) {
  let usages = new Map<string, ServiceUse>();
  let names = new Set<string>();
  let isDue = false;
  const flush = (): void => {
    isDue = false;
    if (signal.aborted) return;
    if (usages.size > 0) tell({ kind: 'usages', usages });
    if (names.size > 0) tell({ kind: 'happened', names });
    usages = new Map();
    names = new Set();
  };
  return (event: DaemonEvent): void => {
    if (event.type === 'service.stats') {
      const { name, cpu, rssMB } = event.data;
      usages.set(name, { cpu, rssMB });
    } else names.add(subjectOf(event));
    if (!isDue) setTimeout(flush, REFRESH_MS);
    isDue = true;
  };
}

async function tellLists(client: Client, { tell, signal }: Followed): Promise<void> {
  const [services, agents] = await Promise.all([client.services({ signal }), client.agents({ signal })]);
  const usages = new Map(
    services.map(({ name, cpu, rssMB }): [string, ServiceUse] => [
      name,
      cpu === undefined || rssMB === undefined ? null : { cpu, rssMB },
    ]),
  );
  tell({ kind: 'usages', usages });
  tell({ kind: 'lists', services, agents });
}

/** Reports a lost connection, unless the interface is ending. */
const tellLost = ({ tell, signal }: Followed, error: unknown): void => {
  if (signal.aborted) return;
  const connection = { state: isRefusal(error) ? 'refused' : 'lost', detail: troubleText(error) } as const;
  tell({ kind: 'connection', connection });
};

/** Follows one connection until it fails in a way that needs a new client. */
async function followOnce(followed: Followed): Promise<void> {
  const { connect, connected, tell, isInSight, signal } = followed;
  const { client, address, hasClusters } = await connect();
  connected(client);
  const gather = gatherer(followed);
  const lost = (error: unknown): void => tellLost(followed, error);
  const tellConnected = (): void =>
    tell({ kind: 'connection', connection: { state: 'connected' }, address: address() });
  const own = new AbortController();
  let isStreamOpen = false;
  let areStale = false;
  const readLists = async (): Promise<boolean> => {
    try {
      await tellLists(client, followed);
      if (areStale && isStreamOpen) tellConnected();
      areStale = false;
    } catch (error) {
      areStale = true;
      lost(error);
    }
    return !areStale;
  };
  const refresh = createRefresher(readLists, REFRESH_MS, own.signal);
  const end = (): void => own.abort();
  let isCloudFollowed = false;
  const followCloud = (): void => {
    if (isCloudFollowed || !hasClusters()) return;
    isCloudFollowed = true;
    void followWorkloads(client, { tell, isInSight, signal: own.signal });
  };
  signal.addEventListener('abort', end);
  try {
    followCloud();
    const events = client.events({
      detail: true,
      signal: own.signal,
      onState: (state) => {
        isStreamOpen = state.open;
        if (!state.open) return lost(state.error);
        tellConnected();
        void refresh();
      },
    });
    for await (const event of events) {
      if (event.type !== 'service.stats') void refresh();
      followCloud();
      gather(event);
    }
  } finally {
    signal.removeEventListener('abort', end);
    own.abort();
  }
}

/** Follows the daemon until `signal` aborts. */
export async function followDaemon(followed: Followed): Promise<void> {
  const { signal } = followed;
  while (!signal.aborted) {
    try {
      await followOnce(followed);
    } catch (error) {
      tellLost(followed, error);
    }
    await pause(RETRY_MS, undefined, { signal }).catch(() => {});
  }
}
