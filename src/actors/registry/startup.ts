// The services at the start of the daemon: adopts their runs, then starts those with autostart.
import { serviceAddress } from '../../protocol/address.ts';
import { awaited, runInDependencyOrder } from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import type { HostProtocol, LedgerRun } from '../../protocol/host.ts';
import { despiteHostLoss } from '../../protocol/host_loss.ts';
import {
  type LastEnd,
  restingState,
  type ServiceProtocol,
  type ServiceSpec,
  type ServiceState,
  type StoredService,
  startMember,
} from '../../protocol/service.ts';
import { type Context, isFailure, type Ref, tolerateFailure } from '../../runtime/actor.ts';

/** How many services adopt their runs at the same time. */
const CONCURRENT_ADOPTIONS = 32;

const serviceRef = (context: Context, name: string): Ref<ServiceProtocol> =>
  context.ref(serviceAddress(name));

/**
 * The runs in the host's ledger; null when the host does not answer. Each service asks for its own run later.
 */
export function hostRuns(host: Ref<HostProtocol>): Promise<LedgerRun[] | null> {
  return tolerateFailure(
    host.ask('runs', {}).then(({ runs }) => runs),
    () => null,
  );
}

/**
 * Reports runs that the host did not take over, because they belong to the state directory of which this one
 * is a copy: docs/reference.md "Copies of the state directory".
 */
export function reportForeignRuns(runs: readonly LedgerRun[], report: (line: string) => void): void {
  const names = runs.flatMap(({ service, end }) => (end?.cause === 'foreign' ? [service] : []));
  if (names.length === 0) return;
  report(
    'the state directory is a copy of another one. Processes that were started there are left alone, and ' +
      `these services count as stopped: ${names.join(', ')}`,
  );
}

/**
 * The states of services that have neither a process nor a pending restart and are not in `held`. Their
 * actors start on demand.
 */
export function idleStates(
  names: Iterable<string>,
  ends: ReadonlyMap<string, LastEnd>,
  runs: readonly LedgerRun[],
  held: ReadonlySet<string>,
): ServiceState[] {
  const withRun = new Set(runs.map(({ service }) => service));
  return [...names].flatMap((name) => {
    const end = ends.get(name) ?? null;
    return withRun.has(name) || held.has(name) || end?.restart || end?.relaunch
      ? []
      : restingState(name, end);
  });
}

/** Has each service adopt its run, if the host has one. */
export async function adoptAll(context: Context, names: readonly string[]): Promise<void> {
  const waiting = names.values();
  const next = async (): Promise<void> => {
    for (const name of waiting)
      await tolerateFailure(serviceRef(context, name).ask('adopt', {}), () => undefined);
  };
  await Promise.all(Array.from({ length: CONCURRENT_ADOPTIONS }, next));
}

/**
 * Starts services in dependsOn order; a task only if it has not completed with the same content before. Skips
 * a service when a dependency failed, or when `isLeft` says to leave it alone: it sleeps, or its group is
 * being restarted.
 */
export async function autostartAll(
  context: Context,
  services: ReadonlyMap<string, StoredService>,
  isLeft: (spec: ServiceSpec) => boolean,
  isClosed: () => boolean,
): Promise<void> {
  const askedAt = context.clock.monotonic();
  const specs = [...services.values()].map(({ spec }) => spec);
  const wanted = specs.filter((spec) => spec.autostart && !isLeft(spec));
  const early = awaited(wanted, 'started');
  const outcomes = await runInDependencyOrder(wanted, async ({ name }, onStarted) => {
    if (isClosed()) throw fail('daemon_busy', 'the daemon is shutting down');
    const request = { timeoutMs: null, autostart: true, askedAt };
    const told = early.has(name) ? onStarted : null;
    await despiteHostLoss(context.clock, () => startMember(serviceRef(context, name), request, told));
  });
  // A service that fails reports that in its own events, and must not keep the daemon from starting.
  for (const outcome of outcomes.values())
    if ('failed' in outcome && !isFailure(outcome.failed)) throw outcome.failed;
}
