// What the registry has the services do when the daemon begins: take over what runs, then start what is to run.

import type { HostProtocol, LedgerRun } from '../../protocol/host.ts';
import type { LastEnd, ServiceProtocol, ServiceState, StoredService } from '../../protocol/service.ts';
import { type Context, isFailure, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';

import { DependencyOrder } from '../dependency_order.ts';
import { serviceStateOf } from '../service/state.ts';

/** Services that take over their runs at once. */
const CONCURRENT_ADOPTIONS = 32;

const serviceRef = (context: Context, name: string): Ref<ServiceProtocol> => context.ref(`service:${name}`);

/** null when the host does not answer: each service asks it again for itself. */
export async function hostRuns(host: Ref<HostProtocol>): Promise<LedgerRun[] | null> {
  try {
    return (await host.ask('runs', {})).runs;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return null;
  }
}

/** What is to be shown of the services that have no process and are owed none: their actors begin when they are asked. */
export function idleStates(
  names: Iterable<string>,
  ends: ReadonlyMap<string, LastEnd>,
  runs: readonly LedgerRun[],
): ServiceState[] {
  const withRun = new Set(runs.map(({ service }) => service));
  return [...names].flatMap((name) => {
    const end = ends.get(name) ?? null;
    return withRun.has(name) || end?.restart
      ? []
      : serviceStateOf(name, { phase: 'idle', trouble: null }, end, 0);
  });
}

/** Each takes over the run that the host has for it. */
export async function adoptAll(context: Context, names: readonly string[]): Promise<void> {
  const waiting = names.values();
  const next = async (): Promise<void> => {
    for (const name of waiting)
      await tolerateFailure(serviceRef(context, name).ask('adopt', {}), () => undefined);
  };
  await Promise.all(Array.from({ length: CONCURRENT_ADOPTIONS }, next));
}

/** In dependsOn order. What depends on a service that did not start is not started; everything else is. */
export async function autostartAll(
  context: Context,
  services: ReadonlyMap<string, StoredService>,
  isClosed: () => boolean,
): Promise<void> {
  const specs = [...services.values()].map(({ spec }) => spec);
  const order = new DependencyOrder(specs.filter((spec) => spec.autostart));
  const visit = async (name: string): Promise<void> => {
    if (isClosed()) return;
    const message = { timeoutMs: null, wait: true, join: true };
    const start = serviceRef(context, name).ask('start', message, { deadlineMs: SERVICE.askDeadlineMs });
    // The failure of one service, which its own events tell, must not keep the daemon down.
    if (await tolerateFailure(start, () => null)) await Promise.all(order.complete(name).map(visit));
  };
  await Promise.all(order.takeReady().map(visit));
}
