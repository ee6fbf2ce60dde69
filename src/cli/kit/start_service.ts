// Starting a service while the user sees what is awaited: the daemon holds the answer until the ready-check has passed, and is
// asked meanwhile why it takes so long.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../client/create_client.ts';
import type { Explanation, StartResult } from '../../client/records.ts';
import { formatDuration } from '../../project/duration.ts';
import type { BatchResult } from './batch.ts';
import { hasErrorCode } from './context.ts';
import { CommandError } from './exit_codes.ts';

const POLL_MS = 300;

/** What is awaited, on one line. */
function describeWait({ waitingFor, reason, lastCheck }: Explanation): string {
  const failed = lastCheck?.error ? ` (last: ${lastCheck.error})` : '';
  return `waiting for ${waitingFor ?? reason}${failed}`;
}

/** Resolves like `work`; until then `tell` hears what the service `name` is waiting for. */
export async function withWaitReports<T>(
  berth: Client,
  name: string,
  onWaiting: (about: string) => void,
  work: Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ask = (): void => {
    berth.explain(name, { signal: over.signal }).then(
      (explanation) => onWaiting(describeWait(explanation)),
      // It is only for show, and the next one may succeed.
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
  /** The service runs already: fail. */
  strict?: boolean;
}

/** Resolves once a service that is alive already runs; with `wait` false at once. Throws a CommandError when it ends first. */
async function awaitRunning(berth: Client, name: string, wait: boolean): Promise<StartResult> {
  for (;;) {
    const { status, pid } = await berth.service(name);
    if (status === 'running' || (status === 'starting' && !wait)) return { name, status, pid: pid ?? null };
    if (status !== 'starting') {
      throw new CommandError(
        `was starting already, and is ${status} now`,
        `\`berth status ${name}\` says why.`,
      );
    }
    await pause(POLL_MS);
  }
}

/** Starts `name` and says how it went. One that is running already is fine, one that is starting is joined. */
export async function startService(
  berth: Client,
  name: string,
  onWaiting: (about: string) => void,
  { timeout, wait = true, strict = false }: StartServiceOptions,
): Promise<BatchResult> {
  const began = performance.now();
  let isSame = false;
  const answer = await withWaitReports(
    berth,
    name,
    onWaiting,
    berth.start(name, { timeout, wait: wait ? undefined : false }).catch((error: unknown) => {
      if (strict || !hasErrorCode(error, 'already_running')) throw error;
      isSame = true;
      return awaitRunning(berth, name, wait);
    }),
  );
  const { url } = await berth.resolve(name);
  const record = { ...answer, url, ...(isSame ? { already: true } : {}) };
  if (isSame) return { record, text: `is already ${answer.status} at ${url}`, isUnchanged: isSame };
  const took = formatDuration(performance.now() - began);
  return { record, text: `is ${answer.status} at ${url} (pid ${answer.pid ?? 'unknown'}, ${took})` };
}

/** What an interrupted start leaves behind. */
export const startContinuesNote = (names: readonly string[]): string =>
  `${names.join(', ')}: the start goes on without you; \`berth stop ${names.join(' ')}\` ends it.`;
