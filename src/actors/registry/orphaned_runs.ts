// Runs that nobody owns any more: their service was removed while no daemon could see to them.

import type { HostProtocol, LedgerRun } from '../../protocol/host.ts';
import type { Ref } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { stopProcessTree } from '../service/effects.ts';

/** Stops the runs `lost`, and has the host forget their services and logs; without an event, since nobody knows the name. */
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
