// Runs that nobody owns any more: their service was removed while no daemon could see to them.
import { SERVICE } from '../../limits.ts';
import type { HostProtocol, RunRow } from '../../protocol/host.ts';
import type { Ref } from '../../runtime/actor.ts';
import { stopTree } from './effects.ts';

/** Stops the runs `lost`, and has the host forget their services and logs; without an event, since nobody knows the name. */
export async function endStrays(host: Ref<HostProtocol>, lost: readonly RunRow[]): Promise<void> {
  await Promise.all(
    lost.map(async ({ service, run, port, end }) => {
      const stop = { service, run, signal: 'SIGTERM', graceMs: SERVICE.stopGraceMs, port };
      if (!end) await stopTree(host, stop);
      await host.ask('acknowledge', { service, run });
      await host.ask('forget', { service });
    }),
  );
}
