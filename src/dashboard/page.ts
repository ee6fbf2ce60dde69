// The page at `/`: the services as they are now, the log of one of them, and the last events. Everything that
// the daemon sends is shown as text only.
import { type Client, connect, isBerthError } from '../client/browser.ts';
import { createEventRow, type LifecycleEvent } from './event_row.ts';
import { LogPanel } from './log_panel.ts';
import { type Action, ServiceTable } from './service_table.ts';

const TOKEN_KEY = 'berth.token';
const EVENTS_SHOWN = 30;
const RETRY_MS = 2_000;
const LIFECYCLE_TYPES = [
  'service.registered',
  'service.started',
  'service.stopped',
  'service.crashed',
  'service.removed',
  'port.conflict',
] as const satisfies readonly LifecycleEvent['type'][];

function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

const connection = element('connection', HTMLElement);
const notice = element('notice', HTMLElement);
const login = element('login', HTMLFormElement);
const tokenInput = element('token', HTMLInputElement);
const eventList = element('events', HTMLOListElement);
const filter = element('filter', HTMLInputElement);

/** A value in the fragment, which no server sees. A plus sign means itself here, not a space. */
const fragmentValue = (key: string): string | null =>
  new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B')).get(key);

/**
 * Moves a token from the fragment to the session storage, which survives a reload. Returns whether there was
 * one.
 */
function takeToken(): boolean {
  const token = fragmentValue('token');
  if (!token) return false;
  sessionStorage.setItem(TOKEN_KEY, token);
  history.replaceState(null, '', location.pathname);
  return true;
}

takeToken();
// Always the page's own origin: the token goes to the daemon that served the page and to nobody else.
const client: Client = connect({ url: location.origin, token: () => sessionStorage.getItem(TOKEN_KEY) });

/** Shows why a call failed, and asks for the token when it is missing or wrong. */
function showError(error: unknown): void {
  if (isBerthError(error) && error.status === 401) {
    if (login.hidden) {
      login.hidden = false;
      tokenInput.focus();
    }
    notice.textContent = sessionStorage.getItem(TOKEN_KEY) === null ? '' : 'The token is wrong.';
  } else if (error instanceof Error) {
    const hint = isBerthError(error) ? error.hint : '';
    notice.textContent = `${error.message} ${hint}`;
  }
}

async function runAction(action: Action, name: string): Promise<void> {
  notice.textContent = '';
  try {
    await client[action](name);
  } catch (error) {
    showError(error);
  }
  // An action without effect causes no event.
  void refresh();
}

const serviceTable = new ServiceTable(
  element('services', HTMLTableElement),
  element('empty', HTMLElement),
  runAction,
);
const logPanel = new LogPanel(client, {
  panel: element('log', HTMLElement),
  title: element('log-name', HTMLElement),
  state: element('log-state', HTMLElement),
  why: element('log-why', HTMLElement),
  lines: element('log-lines', HTMLElement),
});

let reading: Promise<void> | null = null;
let isStale = false;

/** Reads the lists again, one read at a time, and once more if something has changed meanwhile. */
function refresh(): Promise<void> {
  isStale = true;
  reading ??= readLists()
    .catch(showError)
    .finally(() => {
      reading = null;
      if (isStale) void refresh();
    });
  return reading;
}

async function readLists(): Promise<void> {
  isStale = false;
  const asked = [client.services(), client.agents(), client.version()] as const;
  const [services, agents, { gatewayPort }] = await Promise.all(asked);
  const reached = gatewayPort === null ? [] : agents;
  serviceTable.show(
    services,
    new Map(reached.map((one) => [one.name, `http://${one.hostname}:${gatewayPort}/`])),
  );
}

/** The greatest id shown so far, from which the stream and the history go on. */
let lastShownId = 0;

function showEvent(event: LifecycleEvent): void {
  if (event.id === null || event.id <= lastShownId) return;
  lastShownId = event.id;
  eventList.prepend(createEventRow(event));
  while (eventList.childElementCount > EVENTS_SHOWN) eventList.lastElementChild?.remove();
}

/** Whether the event is listed: statistics and resets are not. */
const isLifecycle = (event: { type: string }): event is LifecycleEvent =>
  LIFECYCLE_TYPES.some((type) => type === event.type);

async function showHistory(): Promise<void> {
  const past = await client.history({
    types: LIFECYCLE_TYPES,
    limit: EVENTS_SHOWN,
    since: lastShownId || undefined,
  });
  for (const event of past) if (isLifecycle(event)) showEvent(event);
  // Screen readers announce new events but not the history.
  eventList.ariaLive = 'polite';
}

/** Follows the events until the stream fails permanently. */
async function consumeEvents(): Promise<void> {
  let past: Promise<void> = Promise.resolve();
  const onOpen = (): void => {
    connection.textContent = 'connected';
    notice.textContent = '';
    void refresh();
    past = showHistory().catch(showError);
  };
  const events = client.events({
    detail: true,
    lastEventId: lastShownId || undefined,
    onState: (state) => {
      if (state.open) onOpen();
      else connection.textContent = `connection lost: ${state.error.message}; trying again`;
    },
  });
  for await (const event of events) {
    // The history is shown before new events.
    await past;
    // A daemon with another state directory counts from 1 again.
    if (event.type === 'stream.reset') lastShownId = Math.min(lastShownId, event.data.oldest - 1);
    if (event.type === 'service.stats') serviceTable.measure(event.data);
    else void refresh();
    if (!isLifecycle(event)) continue;
    showEvent(event);
    if ('name' in event.data) void logPanel.explain(event.data.name);
  }
}

async function run(): Promise<void> {
  for (;;) {
    try {
      await consumeEvents();
    } catch (error) {
      connection.textContent = 'not connected';
      showError(error);
    }
    // A wrong token stays wrong. The form reloads the page with another one.
    if (!login.hidden) return;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

addEventListener('hashchange', () => {
  if (takeToken()) location.reload();
  else logPanel.show(fragmentValue('log'));
});
filter.addEventListener('input', () => serviceTable.filter(filter.value));
login.addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_KEY, tokenInput.value);
  location.reload();
});
logPanel.show(fragmentValue('log'));
void run();
