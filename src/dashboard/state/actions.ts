// The actions that a person requests: those under way, and messages about failed ones.
import { signal } from '@preact/signals';
import { isBerthError } from '../../client/browser.ts';
import { refresh, serviceByName } from './daemon.ts';
import { followStart, unfollowStart } from './followed_starts.ts';
import { askForToken, client, errorText } from './session.ts';

/** A message that stays until it is closed or replaced. */
export interface PageNotice {
  id: number;
  tone: 'bad' | 'good';
  /** The requested action. */
  title: string;
  /** The text, line by line. */
  lines: readonly string[];
}

const MAX_NOTICES = 4;
const GOOD_MS = 4_000;

/** The messages shown, the newest last. */
export const notices = signal<readonly PageNotice[]>([]);
/** The actions under way, as `start web`. */
export const underWay = signal<ReadonlySet<string>>(new Set());

let lastNotice = 0;

/** Closes a message. */
export function closeNotice(id: number): void {
  notices.value = notices.peek().filter((one) => one.id !== id);
}

/** Shows a message, and replaces an earlier one with the same title. A good message closes by itself. */
export function notify(tone: PageNotice['tone'], title: string, text = ''): void {
  lastNotice += 1;
  const id = lastNotice;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const others = notices.peek().filter((one) => one.title !== title);
  notices.value = [...others.slice(1 - MAX_NOTICES), { id, tone, title, lines }];
  if (tone === 'good') setTimeout(() => closeNotice(id), GOOD_MS);
}

/** Copies `text` to the clipboard, and says that it has copied `what`. */
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify('good', `copied ${what}`);
  } catch (error) {
    notify('bad', 'copy', String(error));
  }
}

/** The actions on a service. */
export type ServiceAction = 'start' | 'stop' | 'restart' | 'sleep' | 'wake';

/** The actions on all services of a group. */
export const GROUP_ACTIONS = ['start', 'stop', 'restart', 'sleep', 'wake'] as const;
export type GroupAction = (typeof GROUP_ACTIONS)[number];

/** Runs `work`, shown as `title` while it is under way. Shows why it failed. Resolves with its success. */
export async function perform(title: string, work: () => Promise<unknown>): Promise<boolean> {
  if (underWay.peek().has(title)) return false;
  underWay.value = new Set([...underWay.peek(), title]);
  try {
    await work();
    return true;
  } catch (error) {
    if (!askForToken(error)) notify('bad', failedTitle(title, error), errorText(error));
    return false;
  } finally {
    underWay.value = new Set([...underWay.peek()].filter((one) => one !== title));
    // An action without effect causes no event, so the lists are read again here.
    void refresh();
  }
}

const failedTitle = (title: string, error: unknown): string =>
  isBerthError(error) ? `${title}: ${error.code.replaceAll('_', ' ')}` : title;

/**
 * The answer does not wait for the outcome, so that each request leaves its connection at once: browsers open
 * six to a host, for all tabs together.
 */
export const AT_ONCE = { wait: false } as const;

/** Requests `action`. The events tell the outcome of a start, the list that of an end. */
async function request(action: ServiceAction, name: string): Promise<void> {
  if (action === 'stop' || action === 'sleep') {
    unfollowStart(name);
    await client[action](name, AT_ONCE);
    return;
  }
  const onFailed = (text: string) => notify('bad', `${action} ${name}: start failed`, text);
  const refused = followStart(name, action, onFailed);
  try {
    await client[action](name, AT_ONCE);
  } catch (error) {
    refused();
    throw error;
  }
}

/** Performs `action` on the service `name`. */
export const actOn = (action: ServiceAction, name: string): Promise<boolean> =>
  perform(`${action} ${name}`, () => request(action, name));

/** Sends a signal to the service `name`. */
export const signalService = (name: string, signalName: string): Promise<boolean> =>
  perform(`${signalName} ${name}`, () => client.signal(name, signalName));

/** Performs `action` on every service of a group. */
export const actOnGroup = (action: GroupAction, name: string): Promise<boolean> =>
  perform(`${action} all of ${name}`, () => {
    for (const service of serviceByName.peek().values())
      if (service.group === name) unfollowStart(service.name);
    return client[`${action}Group`](name, AT_ONCE);
  });
