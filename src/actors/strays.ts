// Runs that nobody owns any more: their service was removed while no daemon could see to them.
import { SERVICE } from '../limits.ts';
import type { HostProtocol } from '../protocol/host.ts';
import type { Ref } from '../runtime/actor.ts';

/**
 * Stops the runs of services that do not exist, and has the host forget them and their logs; without an event, since
 * nobody knows the name. For the boot of the registry, before services adopt their runs. Resolves with the names.
 */
export async function strays(
  host: Ref<HostProtocol>,
  exists: (service: string) => boolean,
): Promise<string[]> {
  const { runs } = await host.ask('runs', {});
  const lost = runs.filter((row) => !exists(row.service));
  await Promise.all(
    lost.map(async ({ service, run, port, end }) => {
      const graceMs = SERVICE.stopGraceMs;
      const deadlineMs = graceMs + SERVICE.afterKillMs + SERVICE.stopSpareMs;
      if (!end) await host.ask('stop', { service, run, signal: 'SIGTERM', graceMs, port }, { deadlineMs });
      await host.ask('acknowledge', { service, run });
      await host.ask('forget', { service });
    }),
  );
  return lost.map(({ service }) => service);
}
