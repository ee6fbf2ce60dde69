// The page at `/`: the services as they are now, the log of one of them and the last events. What comes from outside is only ever shown as text.
import { type Client, connect, isBerthError } from '../client/browser.ts';
import { eventRow, type Lifecycle } from './events.ts';
import { LogPanel } from './log.ts';
import { type Action, ServiceTable } from './table.ts';

const TOKEN = 'berth.token';
const EVENTS_SHOWN = 30;
const AGAIN_MS = 2_000;
const LIFECYCLE = [
  'service.registered',
  'service.started',
  'service.stopped',
  'service.crashed',
  'service.removed',
  'port.conflict',
] as const satisfies readonly Lifecycle['type'][];

function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

const connection = element('connection', HTMLElement);
const notice = element('notice', HTMLElement);
const login = element('login', HTMLFormElement);
const given = element('token', HTMLInputElement);
const list = element('events', HTMLOListElement);
const filter = element('filter', HTMLInputElement);

/** What stands in the fragment, which no server sees. A plus sign is one here, not a space. */
const inFragment = (key: string): string | null =>
  new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B')).get(key);

/** Moves a token from the fragment to where a reload finds it; whether there was one. */
function takeToken(): boolean {
  const token = inFragment('token');
  if (!token) return false;
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, '', location.pathname);
  return true;
}

takeToken();
// Never an address that is given: the token goes to the daemon that served this page and to nobody else.
const client: Client = connect({ url: location.origin, token: () => sessionStorage.getItem(TOKEN) });

/** Shows why something failed; where the token is missing or wrong, asks for it. */
function complain(error: unknown): void {
  if (isBerthError(error) && error.status === 401) {
    if (login.hidden) {
      login.hidden = false;
      given.focus();
    }
    notice.textContent = sessionStorage.getItem(TOKEN) === null ? '' : 'The token is wrong.';
  } else if (error instanceof Error) {
    const hint = isBerthError(error) ? error.hint : '';
    notice.textContent = `${error.message} ${hint}`;
  }
}

async function act(action: Action, name: string): Promise<void> {
  notice.textContent = '';
  try {
    await client[action](name);
  } catch (error) {
    complain(error);
  }
  // Where nothing happened there is no event either.
  void refresh();
}

const table = new ServiceTable(element('services', HTMLTableElement), element('empty', HTMLElement), act);
const log = new LogPanel(client, {
  panel: element('log', HTMLElement),
  title: element('log-name', HTMLElement),
  state: element('log-state', HTMLElement),
  why: element('log-why', HTMLElement),
  lines: element('log-lines', HTMLElement),
});

let reading: Promise<void> | null = null;
let isStale = false;

/** Reads the lists again: one reading at a time, and one more when something has changed meanwhile. */
function refresh(): Promise<void> {
  isStale = true;
  reading ??= readLists()
    .catch(complain)
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
  table.show(services, new Map(reached.map((one) => [one.name, `http://${one.hostname}:${gatewayPort}/`])));
}

/** The greatest id that was shown: where the stream and the history go on. */
let newest = 0;

function showEvent(event: Lifecycle): void {
  if (event.id === null || event.id <= newest) return;
  newest = event.id;
  list.prepend(eventRow(event));
  while (list.childElementCount > EVENTS_SHOWN) list.lastElementChild?.remove();
}

/** Whether this event is one of those that are listed: statistics and resets are not. */
const isLifecycle = (event: { type: string }): event is Lifecycle =>
  LIFECYCLE.some((type) => type === event.type);

async function showPast(): Promise<void> {
  const past = await client.history({ types: LIFECYCLE, limit: EVENTS_SHOWN, since: newest || undefined });
  for (const event of past) if (isLifecycle(event)) showEvent(event);
  // From now on each is read aloud; what was before is not.
  list.ariaLive = 'polite';
}

/** Follows the events until the stream fails for good. */
async function follow(): Promise<void> {
  let past: Promise<void> = Promise.resolve();
  const onOpen = (): void => {
    connection.textContent = 'connected';
    notice.textContent = '';
    void refresh();
    past = showPast().catch(complain);
  };
  const events = client.events({
    detail: true,
    lastEventId: newest || undefined,
    onState: (state) => {
      if (state.open) onOpen();
      else connection.textContent = `connection lost: ${state.error.message}; trying again`;
    },
  });
  for await (const event of events) {
    // What the history is about to show comes before what is new.
    await past;
    // A daemon on another state directory counts from the beginning.
    if (event.type === 'stream.reset') newest = Math.min(newest, event.data.oldest - 1);
    if (event.type === 'service.stats') table.measure(event.data);
    else void refresh();
    if (!isLifecycle(event)) continue;
    showEvent(event);
    if ('name' in event.data) void log.explain(event.data.name);
  }
}

async function run(): Promise<void> {
  for (;;) {
    try {
      await follow();
    } catch (error) {
      connection.textContent = 'not connected';
      complain(error);
    }
    // A wrong token stays wrong: the form loads the page anew.
    if (!login.hidden) return;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

addEventListener('hashchange', () => {
  if (takeToken()) location.reload();
  else log.show(inFragment('log'));
});
filter.addEventListener('input', () => table.filter(filter.value));
login.addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, given.value);
  location.reload();
});
log.show(inFragment('log'));
void run();
