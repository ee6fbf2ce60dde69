// Starting a service while the user sees what is awaited: the daemon holds the answer until the ready-check has passed, and is
// asked meanwhile why it takes so long.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../client/connect.ts';
import type { Explanation, StartAnswer } from '../client/records.ts';
import { formatDuration } from '../project/duration.ts';
import { hasCode } from './cli.ts';
import type { Done } from './each.ts';
import { CommandError } from './exit.ts';

const ASK_MS = 300;

/** What is awaited, on one line. */
function awaited({ waitingFor, reason, lastCheck }: Explanation): string {
  const failed = lastCheck?.error ? ` (last: ${lastCheck.error})` : '';
  return `waiting for ${waitingFor ?? reason}${failed}`;
}

/** Resolves like `work`; until then `tell` hears what the service `name` is waiting for. */
export async function whileTelling<T>(
  berth: Client,
  name: string,
  tell: (about: string) => void,
  work: Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ask = (): void => {
    berth.explain(name, { signal: over.signal }).then(
      (explanation) => tell(awaited(explanation)),
      // It is only for show, and the next one may succeed.
      () => {},
    );
  };
  const timer = setInterval(ask, ASK_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    over.abort();
  }
}

export interface StartDetail {
  timeout?: number | undefined;
  wait?: boolean;
  /** The service runs already: fail. */
  strict?: boolean;
}

/** Resolves once a service that is alive already runs; with `wait` false at once. Throws a CommandError when it ends first. */
async function joined(berth: Client, name: string, wait: boolean): Promise<StartAnswer> {
  for (;;) {
    const { status, pid } = await berth.service(name);
    if (status === 'running' || (status === 'starting' && !wait)) return { name, status, pid: pid ?? null };
    if (status !== 'starting') {
      throw new CommandError(
        `was starting already, and is ${status} now`,
        `\`berth status ${name}\` says why.`,
      );
    }
    await pause(ASK_MS);
  }
}

/** Starts `name` and says how it went. One that is running already is fine, one that is starting is joined. */
export async function startOne(
  berth: Client,
  name: string,
  tell: (about: string) => void,
  { timeout, wait = true, strict = false }: StartDetail,
): Promise<Done> {
  const began = performance.now();
  let isSame = false;
  const answer = await whileTelling(
    berth,
    name,
    tell,
    berth.start(name, { timeout, wait: wait ? undefined : false }).catch((error: unknown) => {
      if (strict || !hasCode(error, 'already_running')) throw error;
      isSame = true;
      return joined(berth, name, wait);
    }),
  );
  const { url } = await berth.resolve(name);
  const record = { ...answer, url, ...(isSame ? { already: true } : {}) };
  if (isSame) return { record, text: `is already ${answer.status} at ${url}`, isSame };
  const took = formatDuration(performance.now() - began);
  return { record, text: `is ${answer.status} at ${url} (pid ${answer.pid ?? 'unknown'}, ${took})` };
}

/** What an interrupted start leaves behind. */
export const goesOn = (names: readonly string[]): string =>
  `${names.join(', ')}: the start goes on without you; \`berth stop ${names.join(' ')}\` ends it.`;
