// What a person asks of services, what is under way, and what has failed.
import { signal } from '@preact/signals';
import { isBerthError } from '../../client/browser.ts';
import { refresh } from './daemon.ts';
import { askForToken, client, errorText } from './session.ts';

/** A message that stays until it is closed or replaced. */
export interface PageNotice {
  id: number;
  tone: 'bad' | 'good';
  /** What was asked. */
  title: string;
  /** Line by line. */
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

/** Shows a message in place of the same one before it; a good one closes by itself. */
export function notify(tone: PageNotice['tone'], title: string, text = ''): void {
  lastNotice += 1;
  const id = lastNotice;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const others = notices.peek().filter((one) => one.title !== title);
  notices.value = [...others.slice(1 - MAX_NOTICES), { id, tone, title, lines }];
  if (tone === 'good') setTimeout(() => closeNotice(id), GOOD_MS);
}

/** What can be done with a service. */
export type ServiceAction = 'start' | 'stop' | 'restart' | 'sleep' | 'wake';

/** What can be done with all services of a group. */
export const GROUP_ACTIONS = ['start', 'stop', 'restart', 'sleep', 'wake'] as const;
export type GroupAction = (typeof GROUP_ACTIONS)[number];

/** Runs `work`, shown as `title` while it is under way; says why it failed. Resolves with its success. */
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
    // An action without effect causes no event.
    void refresh();
  }
}

const failedTitle = (title: string, error: unknown): string =>
  isBerthError(error) ? `${title}: ${error.code.replaceAll('_', ' ')}` : title;

/** Does `action` with the service `name`. */
export const actOn = (action: ServiceAction, name: string): Promise<boolean> =>
  perform(`${action} ${name}`, () => client[action](name));

/** Sends a signal to the service `name`. */
export const signalService = (name: string, signalName: string): Promise<boolean> =>
  perform(`${signalName} ${name}`, () => client.signal(name, signalName));

/** Does `action` with every service of a group. */
export const actOnGroup = (action: GroupAction, name: string): Promise<boolean> =>
  perform(`${action} all of ${name}`, () => client[`${action}Group`](name));
