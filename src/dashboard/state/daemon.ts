// The state of the daemon: its lists, and the events that change them. One stream, one read at a time.
import { batch, computed, effect, type Signal, signal } from '@preact/signals';
import type { Agent, DaemonEvent, EventData, Service, Stack, Version } from '../../client/browser.ts';
import { isBerthError } from '../../client/browser.ts';
import type { LifecycleEvent } from '../../presentation/event_text.ts';
import { compareNames } from '../../presentation/format.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { stateOf } from '../../presentation/state_tone.ts';
import { askForToken, client, errorText, loginReason } from './session.ts';
import { inTurns, mayStream } from './tab_streams.ts';

/** CPU in cores and memory in megabytes. */
export type Usage = Pick<EventData['service.stats'], 'cpu' | 'rssMB'>;

const EVENTS_KEPT = 1_024;
const RETRY_MS = 2_000;
/** How often a hidden tab without a stream reads the lists. */
const HIDDEN_REFRESH_MS = 10_000;
/** The least time between two reads of the lists, however many events arrive. */
const REFRESH_MS = 250;

/** The connection as the page shows it: a word, and what is wrong. */
export const connection = signal<{ state: 'connecting' | 'connected' | 'lost'; detail: string }>({
  state: 'connecting',
  detail: '',
});
/** How often the connection has opened. A view whose read failed meanwhile reads again with it. */
export const connectionCount = signal(0);
/** Every service and agent, by name. null: not read yet. */
export const serviceList = signal<readonly Service[] | null>(null);
/** Every agent. */
export const agentList = signal<readonly Agent[]>([]);
/** Every stack. */
export const stackList = signal<readonly Stack[]>([]);
/** The daemon itself; null: not read yet. */
export const version = signal<Version | null>(null);
/** The last events, the newest first. */
export const recentEvents = signal<readonly LifecycleEvent[]>([]);

/** The services by name. */
export const serviceByName = computed(() => new Map((serviceList.value ?? []).map((one) => [one.name, one])));
/** The agents by name. */
export const agentByName = computed(() => new Map(agentList.value.map((one) => [one.name, one])));

/** The state of a service as lists show it; of an agent, what it is doing. */
export const shownState = (service: Service): string =>
  stateOf(service, agentByName.value.get(service.name) ?? null);

const usages = new Map<string, Signal<Usage | null>>();

/** The last measured usage of a service; null: it does not run. */
export function usageOf(name: string): Signal<Usage | null> {
  const known = usages.get(name);
  if (known) return known;
  const made = signal<Usage | null>(null);
  usages.set(name, made);
  return made;
}

/** The new list with the old objects of unchanged items, so that their rows do not render again. */
function shared<T extends { name: string }>(before: readonly T[], now: readonly T[]): T[] {
  const known = new Map(before.map((one) => [one.name, one]));
  return now
    .map((one) => {
      const old = known.get(one.name);
      return old && JSON.stringify(old) === JSON.stringify(one) ? old : one;
    })
    .sort((one, other) => compareNames(one.name, other.name));
}

/** The service without its usage, which changes with every measurement. `usageOf` has the usage. */
function withoutUsage({ cpu: _cpu, rssMB: _rssMB, ...rest }: Service): Service {
  return rest;
}

async function readLists(): Promise<void> {
  const asked = [client.services(), client.agents(), client.stacks()] as const;
  const [readServices, readAgents, readStacks] = await Promise.all(asked);
  batch(() => {
    for (const { name, cpu, rssMB } of readServices)
      usageOf(name).value = cpu === undefined || rssMB === undefined ? null : { cpu, rssMB };
    serviceList.value = shared(serviceList.peek() ?? [], readServices.map(withoutUsage));
    agentList.value = shared(agentList.peek(), readAgents);
    stackList.value = shared(stackList.peek(), readStacks);
  });
}

/** Why the lists are out of date; '': they are current. The page reads them again by itself. */
export const staleReason = signal('');

/** Reads the lists. Returns true if that worked, or if it needs a login, which reads them again. */
async function readOrSayWhy(): Promise<boolean> {
  try {
    await readLists();
    staleReason.value = '';
    return true;
  } catch (error) {
    if (askForToken(error)) return true;
    staleReason.value = errorText(error);
    return false;
  }
}

/** Reads the lists again, one read at a time, and once more if they may have changed meanwhile. */
export const refresh = createRefresher(readOrSayWhy, REFRESH_MS);

/** The greatest event id shown so far, after which the stream and the history continue. */
let lastShownId = 0;

function addEvents(events: readonly DaemonEvent[]): void {
  const fresh = events.filter((event): event is LifecycleEvent => {
    if (event.type === 'service.stats' || event.type === 'stream.reset') return false;
    return event.id !== null && event.id > lastShownId;
  });
  const last = fresh.at(-1);
  if (last === undefined || last.id === null) return;
  lastShownId = last.id;
  recentEvents.value = [...fresh.reverse(), ...recentEvents.peek()].slice(0, EVENTS_KEPT);
}

async function readHistory(): Promise<void> {
  addEvents(await client.history({ limit: EVENTS_KEPT, since: lastShownId || undefined }));
}

/** The last event that is not a statistic. A view that shows more of one service follows it. */
export const lastEvent = signal<LifecycleEvent | null>(null);

function onLost(error: Error): void {
  connection.value = { state: 'lost', detail: error.message };
  askForToken(error);
}

/** Follows the events until the stream fails permanently, or `signal` aborts. */
async function consumeEvents(signal: AbortSignal): Promise<void> {
  let past: Promise<void> = Promise.resolve();
  const onOpen = (): void => {
    connection.value = { state: 'connected', detail: '' };
    connectionCount.value += 1;
    loginReason.value = null;
    void refresh();
    past = readHistory().catch((error: unknown) => void askForToken(error));
    client.version().then(
      (read) => {
        version.value = read;
      },
      // The stream reports what is wrong with the connection.
      () => {},
    );
  };
  const events = client.events({
    detail: true,
    lastEventId: lastShownId || undefined,
    signal,
    onState: (state) => (state.open ? onOpen() : onLost(state.error)),
  });
  for await (const event of events) {
    // The history is shown before new events.
    await past;
    // A daemon with another state directory counts from 1 again.
    if (event.type === 'stream.reset') lastShownId = Math.min(lastShownId, event.data.oldest - 1);
    if (event.type === 'service.stats') {
      const { name, cpu, rssMB } = event.data;
      usageOf(name).value = { cpu, rssMB };
      continue;
    }
    void refresh();
    if (event.type === 'stream.reset') continue;
    addEvents([event]);
    lastEvent.value = event;
  }
}

/** Ends the wait before the next attempt. */
let retry = (): void => {};

/** Tries again at once, because the tab has a new key. */
export const reconnect = (): void => retry();

/** Reads the lists in turn while a hidden tab has no stream, because its title and icon show them too. */
function followHidden(): void {
  effect(() => {
    if (mayStream.value) return undefined;
    const timer = setInterval(() => void refresh(), HIDDEN_REFRESH_MS);
    return () => clearInterval(timer);
  });
}

/** Follows the daemon for as long as the page lives. */
export async function follow(): Promise<never> {
  const { signal } = new AbortController();
  followHidden();
  for (;;) {
    const wait = new Promise<void>((resolve) => {
      retry = resolve;
    });
    try {
      await inTurns(signal, consumeEvents);
    } catch (error) {
      connection.value = { state: 'lost', detail: errorText(error) };
      askForToken(error);
      // Without a key, or with an unknown one, another attempt can succeed only after a login.
      if (!isBerthError(error) || error.status !== 401) setTimeout(retry, RETRY_MS);
    }
    await wait;
  }
}
