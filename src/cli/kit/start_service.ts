// Starts services and shows what they wait for. The daemon answers only once the ready-check has passed, so
// separate requests ask for the reason of the wait.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../client/create_client.ts';
import type { Explanation, StartResult } from '../../client/records.ts';
import { tookText } from '../../presentation/format.ts';
import type { BatchResult } from './batch.ts';
import { hasErrorCode } from './context.ts';
import { atUrl } from './format.ts';
import { isCurrent } from './registration_diff.ts';

const POLL_MS = 300;
/** All that is known about a service without a ready-check is that it has a process. */
const NO_CHECK = 'started (no ready-check)';
const STARTED_POLL_MS = 50;

/** The reason for the wait, on one line. */
function describeWait({ waitingFor, reason, lastCheck }: Explanation): string {
  const failed = lastCheck?.error ? ` (last: ${lastCheck.error})` : '';
  return `waiting for ${waitingFor ?? reason}${failed}`;
}

/** Resolves like `work`; until then calls `onWaiting` with what the service `name` is waiting for. */
export async function withWaitReports<T>(
  client: Client,
  name: string,
  onWaiting: (about: string) => void,
  work: Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ask = (): void => {
    client.explain(name, { signal: over.signal }).then(
      (explanation) => onWaiting(describeWait(explanation)),
      // The reason is only informative, and the next request may succeed.
      () => {},
    );
  };
  const timer = setInterval(ask, POLL_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    over.abort();
  }
}

export interface StartServiceOptions {
  timeout?: number | undefined;
  wait?: boolean;
  /** The daemon does not put it to sleep when it is idle. */
  awake?: boolean;
  /** Fail if the service is already running. */
  strict?: boolean;
  /** For a task: do not run it if it has completed with the same content before. */
  ifChanged?: boolean;
}

/**
 * Starts the service `name`. If it already runs, the result says so; if it is starting, joins that start and
 * fails if it fails.
 */
export async function startService(
  client: Client,
  name: string,
  onWaiting: (about: string) => void,
  { timeout, wait = true, awake = false, strict = false, ifChanged = false }: StartServiceOptions,
): Promise<BatchResult> {
  const began = performance.now();
  let isAlreadyStarted = false;
  const options = {
    timeout,
    wait: wait && undefined,
    awake: awake || undefined,
    ifChanged: ifChanged || undefined,
  };
  const answer = await withWaitReports(
    client,
    name,
    onWaiting,
    client.start(name, options).catch((error: unknown) => {
      if (strict || !hasErrorCode(error, 'already_running')) throw error;
      isAlreadyStarted = true;
      return client.start(name, { ...options, join: true });
    }),
  );
  if (answer.status === 'completed') return completedResult(answer);
  const service = await client.service(name);
  const { ready, url } = service;
  const record = { ...answer, url, ...(isAlreadyStarted ? { already: true } : {}) };
  if (isAlreadyStarted)
    return {
      record,
      text: `is already ${answer.status}${atUrl(service)}`,
      isUnchanged: true,
      isOutdated: !isCurrent(service),
    };
  const took = tookText(performance.now() - began);
  const facts = `pid ${answer.pid ?? 'unknown'}, ${took}`;
  if (answer.status !== 'running' || ready !== null)
    return { record, text: `is ${answer.status}${atUrl(service)} (${facts})` };
  return { record, text: `${NO_CHECK}, ${facts}`, uncheckedPid: answer.pid };
}

/** The result of a task that has completed, now or before. */
const completedResult = (answer: StartResult): BatchResult =>
  answer.unchanged
    ? { record: answer, text: 'has completed before, and nothing of it has changed', isUnchanged: true }
    : { record: answer, text: `has completed in ${tookText(answer.ms ?? 0)}` };

/** Stops the service `name` and starts it again; a stopped one is started. */
export async function restartService(
  client: Client,
  name: string,
  onWaiting: (about: string) => void,
  { timeout, grace }: { timeout?: number | undefined; grace?: number | undefined },
): Promise<BatchResult> {
  const began = performance.now();
  const answer = await withWaitReports(client, name, onWaiting, client.restart(name, { timeout, grace }));
  if (answer.status === 'completed') return completedResult(answer);
  const service = await client.service(name);
  const { ready, url } = service;
  const took = tookText(performance.now() - began);
  const facts = `pid ${answer.pid ?? 'unknown'}, ${took}`;
  const record = { ...answer, url };
  if (answer.status !== 'running' || ready !== null)
    return { record, text: `was restarted${atUrl(service)} (${facts})` };
  return { record, text: `was restarted: ${NO_CHECK}, ${facts}`, uncheckedPid: answer.pid };
}

/** The result of `work`, a start; calls `onStarted` as soon as `name` has a process. */
export async function whenStarted<T>(
  client: Client,
  name: string,
  work: Promise<T>,
  onStarted: () => void,
): Promise<T> {
  const over = new AbortController();
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const { pid } = await client.service(name, { signal: over.signal });
      if (pid !== undefined) return onStarted();
      await pause(STARTED_POLL_MS);
    }
  };
  // Ignores errors: the start itself reports a failure.
  look().catch(() => {});
  try {
    return await work;
  } finally {
    over.abort();
  }
}

/** The note about starts that Ctrl-C leaves unfinished. */
export const startContinuesNote = (names: readonly string[]): string =>
  `${names.join(', ')}: the start continues in the background; \`berth stop ${names.join(' ')}\` ends it.`;
