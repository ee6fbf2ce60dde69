// Runs without a registered service: docs/reference.md "Damaged store".
import { COMMAND_ID_PATTERN } from '../../protocol/commands.ts';
import type { EventsProtocol } from '../../protocol/events.ts';
import { type HostProtocol, type LedgerRun, stopProcessTree } from '../../protocol/host.ts';
import { type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';

/**
 * Of `names`, which are not registered, those of which it is certain that nothing of theirs is wanted:
 * commands, whose terminals are gone, and services whose last event is their removal. A removal ends the
 * process and deletes the logs before the record, so what a killed daemon leaves of it is registered still.
 */
export async function removedNames(
  events: Ref<EventsProtocol>,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const removed = new Set(names.filter((name) => COMMAND_ID_PATTERN.test(name)));
  const services = names.filter((name) => !removed.has(name));
  if (services.length === 0) return removed;
  const query = { types: null, names: services, since: null, limit: Number.MAX_SAFE_INTEGER };
  const history = await tolerateFailure(events.ask('history', query), () => ({ events: [] }));
  const last = new Map(history.events.map(({ name, type }) => [name, type]));
  for (const [name, type] of last) if (type === 'service.removed') removed.add(name);
  return removed;
}

/**
 * Stops `orphanedRuns` and makes the host forget their services and logs. Journals no event, because the
 * services are no longer registered.
 */
export async function stopOrphanedRuns(
  host: Ref<HostProtocol>,
  orphanedRuns: readonly LedgerRun[],
): Promise<void> {
  await Promise.all(
    orphanedRuns.map(async ({ service, run, port, end }) => {
      const stop = { service, run, signal: 'SIGTERM', graceMs: SERVICE.defaultStopGraceMs, port };
      if (!end) await stopProcessTree(host, stop);
      await host.ask('acknowledge', { service, run });
      await host.ask('forget', { service });
    }),
  );
}
