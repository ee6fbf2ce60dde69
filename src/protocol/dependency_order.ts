// The order defined by dependsOn: docs/reference.md "Start of a group". Used for groups, autostart and
// project files.

/** A service with its dependencies. Names in `dependsOn` outside the set of services have no effect. */
export interface DependentService {
  readonly name: string;
  readonly dependsOn: readonly string[];
}

/**
 * Yields services in dependsOn order, each as soon as its dependencies are done. Members of a cycle never
 * become ready; `takeRemaining` returns them.
 */
export class DependencyOrder {
  /** By service, the ones that may become ready when it is done. */
  private readonly dependents = new Map<string, string[]>();
  /** The number of unfinished dependencies of each service. */
  private readonly pendingCounts = new Map<string, number>();

  constructor(services: readonly DependentService[]) {
    for (const { name } of services) this.pendingCounts.set(name, 0);
    for (const { name, dependsOn } of services) {
      for (const other of new Set(dependsOn)) {
        if (other === name || !this.pendingCounts.has(other)) continue;
        const next = this.dependents.get(other);
        if (next) next.push(name);
        else this.dependents.set(other, [name]);
        this.pendingCounts.set(name, (this.pendingCounts.get(name) ?? 0) + 1);
      }
    }
  }

  /** The services without open dependencies. Each name is returned once, by this or by `complete`. */
  takeReady(): string[] {
    const names = [...this.pendingCounts].filter(([, count]) => count === 0).map(([name]) => name);
    for (const name of names) this.pendingCounts.delete(name);
    return names;
  }

  /** Marks `name` as done. Returns the services whose last open dependency it was. */
  complete(name: string): string[] {
    return (this.dependents.get(name) ?? []).filter((next) => {
      const count = this.pendingCounts.get(next);
      if (count === undefined) return false;
      this.pendingCounts.set(next, count - 1);
      return count === 1 && this.pendingCounts.delete(next);
    });
  }

  /** All services not returned so far. They are not returned again. */
  takeRemaining(): string[] {
    const names = [...this.pendingCounts.keys()];
    this.pendingCounts.clear();
    return names;
  }
}

/**
 * Runs `act` for every service as soon as its dependencies are done. After an error nothing new begins; the
 * work under way is awaited, and the first error is thrown. `isHalted` ends the walk in the same way, without
 * an error.
 */
export async function walkInOrder(
  order: DependencyOrder,
  act: (name: string) => Promise<void>,
  isHalted: () => boolean = () => false,
): Promise<void> {
  const errors: unknown[] = [];
  const visit = async (name: string): Promise<void> => {
    if (errors.length > 0 || isHalted()) return;
    try {
      await act(name);
    } catch (error) {
      errors.push(error);
      return;
    }
    await Promise.all(order.complete(name).map(visit));
  };
  await Promise.all(order.takeReady().map(visit));
  if (errors.length === 0) await Promise.all(order.takeRemaining().map(visit));
  if (errors.length > 0) throw errors[0];
}

/** The outcome of the work on one service. `skipped`: the name of a dependency that is not done. */
export type WorkOutcome = { done: true } | { failed: unknown } | { skipped: string };

/** Runs `work` in dependsOn order. Dependents of a failure are skipped, everything else runs. */
export async function runInDependencyOrder<S extends DependentService>(
  services: readonly S[],
  work: (service: S) => Promise<void>,
): Promise<Map<string, WorkOutcome>> {
  const byName = new Map(services.map((service) => [service.name, service]));
  const outcomes = new Map<string, WorkOutcome>();
  const isMissing = (name: string): boolean => byName.has(name) && !('done' in (outcomes.get(name) ?? {}));
  const outcomeOf = async (service: S): Promise<WorkOutcome> => {
    const missing = service.dependsOn.find((other) => other !== service.name && isMissing(other));
    if (missing !== undefined) return { skipped: missing };
    try {
      await work(service);
      return { done: true };
    } catch (failed) {
      return { failed };
    }
  };
  await walkInOrder(new DependencyOrder(services), async (name) => {
    const service = byName.get(name);
    if (service) outcomes.set(name, await outcomeOf(service));
  });
  return new Map(
    [...byName.keys()].flatMap((name) => {
      const outcome = outcomes.get(name);
      return outcome ? [[name, outcome] as const] : [];
    }),
  );
}

/** The same services with every dependency reversed: each comes after its dependents. */
export function reverseDependencies<S extends DependentService>(
  services: readonly S[],
): (S & DependentService)[] {
  const dependents = new Map<string, string[]>(services.map(({ name }) => [name, []]));
  for (const { name, dependsOn } of services)
    for (const other of new Set(dependsOn)) dependents.get(other)?.push(name);
  return services.map((service) => ({ ...service, dependsOn: dependents.get(service.name) ?? [] }));
}

/** `names` and all their dependencies, each once. */
export function withDependencies(
  services: readonly DependentService[],
  names: readonly string[],
): Set<string> {
  const byName = new Map(services.map((service) => [service.name, service]));
  const chosen = new Set<string>();
  const add = (name: string): void => {
    if (chosen.has(name)) return;
    chosen.add(name);
    for (const dependency of byName.get(name)?.dependsOn ?? []) add(dependency);
  };
  for (const name of names) add(name);
  return chosen;
}

/**
 * The shortest cycle through `name` if it depended on `dependsOn`, from `name` to `name`; undefined when
 * there is none. `dependenciesOf` returns the dependencies of another service, which may be unknown.
 */
export function dependencyCycle(
  name: string,
  dependsOn: readonly string[],
  dependenciesOf: (name: string) => readonly string[],
): string[] | undefined {
  const reachedFrom = new Map<string, string>();
  const reached = [name];
  for (const at of reached) {
    for (const next of at === name ? dependsOn : dependenciesOf(at)) {
      if (next === name) return [...pathTo(at, reachedFrom), name];
      if (reachedFrom.has(next)) continue;
      reachedFrom.set(next, at);
      reached.push(next);
    }
  }
  return undefined;
}

function pathTo(end: string, reachedFrom: ReadonlyMap<string, string>): string[] {
  const path: string[] = [];
  for (let at: string | undefined = end; at !== undefined; at = reachedFrom.get(at)) path.unshift(at);
  return path;
}

/** A cycle among `services`, in the form of `dependencyCycle`, for the first service that is part of one. */
export function findDependencyCycle(services: readonly DependentService[]): string[] | undefined {
  const dependencies = new Map(services.map(({ name, dependsOn }) => [name, dependsOn]));
  for (const { name, dependsOn } of services) {
    const cycle = dependencyCycle(name, dependsOn, (other) => dependencies.get(other) ?? []);
    if (cycle) return cycle;
  }
  return undefined;
}

/** The services that depend on `name`, directly or through others. */
export function dependantsOf(services: readonly DependentService[], name: string): ReadonlySet<string> {
  const found = new Set<string>();
  const waiting = [name];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const service of services) {
      if (!service.dependsOn.includes(next) || found.has(service.name)) continue;
      found.add(service.name);
      waiting.push(service.name);
    }
  }
  return found;
}
