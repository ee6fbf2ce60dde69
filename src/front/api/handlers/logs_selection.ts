// Parses a query over many logs: docs/reference.md "Logs of many services".
import type { logs } from '../../../api/logs.ts';
import type { QueryOf } from '../../../api/operation.ts';
import { fail } from '../../../protocol/errors.ts';
import { isRunChoice, type LogFilterSpec } from '../../../protocol/logs.ts';
import { parseTime } from '../../../protocol/timestamps.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import { LOGS } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';
import type { Reach } from '../reach.ts';
import { findService } from './service_lookup.ts';

/** The query values that both operations have. */
export type LogSelection = Omit<QueryOf<typeof logs.search>, 'limit' | 'before'>;

function wantedNames(app: AppContext, { names, stack, agents }: LogSelection, reach: Reach | null): string[] {
  const specs = names ? [...new Set(names)].map((name) => findService(app, name)) : app.views.specs();
  const isWanted = (spec: SpecRow): boolean =>
    (!spec.agent || (agents ?? names !== null)) &&
    (stack === null || spec.stack === stack) &&
    (reach === null || reach.has(spec));
  return specs.filter(isWanted).map(({ name }) => name);
}

/**
 * The names of the services that a query selects; without explicit names, only those the caller may reach.
 * Throws unknown_service, forbidden_owner, and invalid_spec for too many.
 */
export function selectedNames(app: AppContext, selection: LogSelection, reach: Reach | null): string[] {
  const { names, stack } = selection;
  if (reach) for (const name of names ?? []) reach.assertName(name);
  if (reach && stack !== null) reach.assertStack(stack);
  const wanted = wantedNames(app, selection, reach);
  if (wanted.length <= LOGS.maxServices) return wanted;
  const message = `names must be given: logs of at most ${LOGS.maxServices} services are read together`;
  throw fail('invalid_spec', message, { details: [{ path: 'names', message }] });
}

/** The filter of a query at `now`, in epoch milliseconds. Throws invalid_spec, which names every fault. */
export function filterOf(selection: LogSelection, now: number): LogFilterSpec {
  const { q, regex, level, stream, since, until, run, context } = selection;
  const faults: { path: string; message: string }[] = [];
  const timeOf = (path: 'since' | 'until', text: string | null): number | null => {
    const time = text === null ? null : parseTime(text, now);
    if (text !== null && time === null)
      faults.push({ path, message: `${path} must be a time in RFC 3339, or a duration such as 15m` });
    return time;
  };
  for (const [path, text] of [
    ['q', q],
    ['regex', regex],
  ] as const) {
    const isFit = text === null || (text.length > 0 && text.length <= LOGS.maxQueryLength);
    if (!isFit) faults.push({ path, message: `${path} must have 1 to ${LOGS.maxQueryLength} characters` });
  }
  if (run !== null && !isRunChoice(run))
    faults.push({ path: 'run', message: 'run must be last, a number that counts back from it, or an id' });
  const times = { since: timeOf('since', since), until: timeOf('until', until) };
  if (faults.length > 0)
    throw fail('invalid_spec', faults.map(({ message }) => message).join('; '), { details: faults });
  return { q, regex, level, stream, context: context ?? 0, ...times };
}

/**
 * Like `selectedNames`, for a stream: later calls skip services that were removed, and return at most the
 * allowed number.
 */
export function namesSelector(app: AppContext, selection: LogSelection, reach: Reach | null): () => string[] {
  const { names } = selection;
  selectedNames(app, selection, reach);
  return () => {
    const known = names === null ? null : names.filter((name) => app.views.spec(name) !== null);
    return wantedNames(app, { ...selection, names: known }, reach).slice(0, LOGS.maxServices);
  };
}
