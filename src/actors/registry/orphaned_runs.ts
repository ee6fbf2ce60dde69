// Runs without a service: it was removed while the process host could not be reached.
import { type HostProtocol, type LedgerRun, stopProcessTree } from '../../protocol/host.ts';
import type { Ref } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';

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
