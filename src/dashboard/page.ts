// The page at `/`: the services as they are now, the log of one of them, and the last events. Everything that
// the daemon sends is shown as text only.
import { isBerthError } from '../client/browser.ts';
import { PageSession } from '../client/page_session.ts';
import { createEventRow, type LifecycleEvent } from './event_row.ts';
import { LogPanel } from './log_panel.ts';
import { type Action, ServiceTable } from './service_table.ts';

const EVENTS_SHOWN = 30;
const RETRY_MS = 2_000;
const LIFECYCLE_TYPES = [
  'service.registered',
  'service.started',
  'service.stopped',
  'service.crashed',
  'service.completed',
  'service.removed',
  'service.changed',
  'service.slept',
  'service.woke',
  'agent.slept',
  'agent.woke',
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

/** The code that `berth open` has put into the fragment, from which it is removed; null: none. */
function takeCode(): string | null {
  const code = fragmentValue('code');
  if (code !== null) history.replaceState(null, '', location.pathname);
  return code;
}

const code = takeCode();
// Always the page's own origin: nothing goes to anybody but the daemon that has served the page.
const session = new PageSession(location.origin, sessionStorage);
const { client } = session;

function askForToken(): void {
  if (!login.hidden) return;
  login.hidden = false;
  tokenInput.focus();
}

const textOf = (error: unknown): string =>
  isBerthError(error) ? `${error.message}. ${error.hint}` : String(error);

/** Whether another key may help: none was given, or the server does not know it. */
const needsLogin = (error: unknown): boolean =>
  isBerthError(error) && (error.status === 401 || error.code === 'unproven');

/** Shows why a call failed, and asks for the token when it is missing or wrong. */
function showError(error: unknown): void {
  if (needsLogin(error)) askForToken();
  if (isBerthError(error) && error.status === 401)
    notice.textContent ||= '`berth open` in a terminal opens this page without asking.';
  else notice.textContent = textOf(error);
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
    login.hidden = true;
    notice.textContent = '';
    void refresh();
    past = showHistory().catch(showError);
  };
  const events = client.events({
    detail: true,
    lastEventId: lastShownId || undefined,
    onState: (state) => {
      if (state.open) onOpen();
      else {
        connection.textContent = `connection lost: ${state.error.message}; trying again`;
        if (needsLogin(state.error)) showError(state.error);
      }
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

/** Ends the wait for the next attempt. */
let retry = (): void => {};

async function run(): Promise<void> {
  for (;;) {
    const pause = new Promise<void>((resolve) => {
      retry = resolve;
    });
    try {
      await consumeEvents();
    } catch (error) {
      connection.textContent = 'not connected';
      showError(error);
      // Without a key, or with one that is not known, another attempt helps only after a login.
      if (!isBerthError(error) || error.status !== 401) setTimeout(retry, RETRY_MS);
    }
    await pause;
  }
}

/** Begins the session, and shows why it cannot begin. */
async function begin(opening: Promise<void>): Promise<void> {
  try {
    await opening;
    retry();
    // A log that could not be read without the session is read now.
    logPanel.show(null);
  } catch (error) {
    askForToken();
    notice.textContent = textOf(error);
  }
  logPanel.show(fragmentValue('log'));
}

addEventListener('hashchange', () => {
  const another = takeCode();
  if (another === null) logPanel.show(fragmentValue('log'));
  else void begin(session.resume(another));
});
filter.addEventListener('input', () => serviceTable.filter(filter.value));
login.addEventListener('submit', (event) => {
  event.preventDefault();
  void begin(session.login(tokenInput.value));
  tokenInput.value = '';
});
await begin(session.resume(code));
void run();
