// The order defined by dependsOn, for groups, autostart and project files:
// docs/reference.md "Start of a group".

export const DEPENDENCY_CONDITIONS = ['started', 'ready', 'completed'] as const;
export type DependencyCondition = (typeof DEPENDENCY_CONDITIONS)[number];

/** A dependency with its condition: docs/reference.md "Dependencies". */
export interface ConditionalDependency {
  name: string;
  condition: DependencyCondition;
}

/** A bare name means: until a service is ready, or a task has completed. */
export type Dependency = string | ConditionalDependency;

export const dependencyName = (dependency: Dependency): string =>
  typeof dependency === 'string' ? dependency : dependency.name;

/** `name`, or `name:condition`, for people. */
export const dependencyText = (dependency: Dependency): string =>
  typeof dependency === 'string' ? dependency : `${dependency.name}:${dependency.condition}`;

/** The same dependency, on the service renamed by `nameOf`. */
export const renamedDependency = (dependency: Dependency, nameOf: (name: string) => string): Dependency =>
  typeof dependency === 'string' ? nameOf(dependency) : { ...dependency, name: nameOf(dependency.name) };

/** A service with its dependencies. Names in `dependsOn` outside the set of services have no effect. */
export interface DependentService {
  readonly name: string;
  readonly dependsOn: readonly Dependency[];
}

/**
 * What dependents can wait for: `started`, the process exists; `done`, a service is ready or a task has
 * completed.
 */
export type Milestone = 'started' | 'done';

const milestoneOf = (dependency: Dependency): Milestone =>
  typeof dependency === 'object' && dependency.condition === 'started' ? 'started' : 'done';

/**
 * Yields services in dependsOn order, each as soon as its dependencies are satisfied. Members of a cycle
 * never become ready; `takeRemaining` returns them.
 */
export class DependencyOrder {
  /** For each milestone of a service, the services that wait for it. */
  private readonly dependents = { started: new Map<string, string[]>(), done: new Map<string, string[]>() };
  /** The number of unsatisfied dependencies of each service. */
  private readonly pendingCounts = new Map<string, number>();

  constructor(services: readonly DependentService[]) {
    for (const { name } of services) this.pendingCounts.set(name, 0);
    for (const { name, dependsOn } of services) {
      for (const [other, milestone] of new Map(
        dependsOn.map((one) => [dependencyName(one), milestoneOf(one)]),
      )) {
        if (other === name || !this.pendingCounts.has(other)) continue;
        const next = this.dependents[milestone].get(other);
        if (next) next.push(name);
        else this.dependents[milestone].set(other, [name]);
        this.pendingCounts.set(name, (this.pendingCounts.get(name) ?? 0) + 1);
      }
    }
  }

  /** The services without unsatisfied dependencies. Each name is returned once, by this or by `complete`. */
  takeReady(): string[] {
    const names = [...this.pendingCounts].filter(([, count]) => count === 0).map(([name]) => name);
    for (const name of names) this.pendingCounts.delete(name);
    return names;
  }

  /**
   * Marks `milestone` of `name` as reached. Returns the services for which it was the last unsatisfied
   * dependency.
   */
  complete(name: string, milestone: Milestone = 'done'): string[] {
    const waiting = this.dependents[milestone].get(name) ?? [];
    this.dependents[milestone].delete(name);
    return waiting.filter((next) => {
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
 * Runs `act` for every service once its dependencies are satisfied. `act` calls `onStarted` when the process
 * exists; otherwise its end counts. After an error nothing new begins, the work under way is awaited, and the
 * first error is thrown. `isHalted` ends the walk in the same way, without an error.
 */
export async function walkInOrder(
  order: DependencyOrder,
  act: (name: string, onStarted: () => void) => Promise<void>,
  isHalted: () => boolean = () => false,
): Promise<void> {
  const errors: unknown[] = [];
  const visit = async (name: string): Promise<void> => {
    if (errors.length > 0 || isHalted()) return;
    const early: Promise<void>[] = [];
    const onStarted = (): void => void early.push(...order.complete(name, 'started').map(visit));
    try {
      await act(name, onStarted);
      onStarted();
      early.push(...order.complete(name, 'done').map(visit));
    } catch (error) {
      errors.push(error);
    }
    await Promise.all(early);
  };
  await Promise.all(order.takeReady().map(visit));
  if (errors.length === 0) await Promise.all(order.takeRemaining().map(visit));
  if (errors.length > 0) throw errors[0];
}

/** The outcome for one service. `skipped`: the name of an unsatisfied dependency. */
export type WorkOutcome = { done: true } | { failed: unknown } | { skipped: string };

/** Runs `work` like `walkInOrder`, but only skips the dependents of a failure; everything else runs. */
export async function runInDependencyOrder<S extends DependentService>(
  services: readonly S[],
  work: (service: S, onStarted: () => void) => Promise<void>,
): Promise<Map<string, WorkOutcome>> {
  const byName = new Map(services.map((service) => [service.name, service]));
  const outcomes = new Map<string, WorkOutcome>();
  const order = new DependencyOrder(services);
  const started = new Set<string>();
  const isMissing = (dependency: Dependency): boolean => {
    const name = dependencyName(dependency);
    if (milestoneOf(dependency) === 'started' && started.has(name)) return false;
    return byName.has(name) && !('done' in (outcomes.get(name) ?? {}));
  };
  const outcomeOf = async (service: S, onStarted: () => void): Promise<WorkOutcome> => {
    const others = service.dependsOn.filter((one) => dependencyName(one) !== service.name);
    const missing = others.find(isMissing);
    if (missing !== undefined) return { skipped: dependencyName(missing) };
    try {
      await work(service, () => {
        started.add(service.name);
        onStarted();
      });
      return { done: true };
    } catch (failed) {
      return { failed };
    }
  };
  await walkInOrder(order, async (name, onStarted) => {
    const service = byName.get(name);
    if (service) outcomes.set(name, await outcomeOf(service, onStarted));
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
    for (const other of new Set(dependsOn.map(dependencyName))) dependents.get(other)?.push(name);
  return services.map((service) => ({ ...service, dependsOn: dependents.get(service.name) ?? [] }));
}

/** The names of the services that someone waits for to reach `milestone`. */
export const awaited = (services: readonly DependentService[], milestone: Milestone): Set<string> =>
  new Set(
    services.flatMap(({ dependsOn }) =>
      dependsOn.filter((one) => milestoneOf(one) === milestone).map(dependencyName),
    ),
  );

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
    for (const dependency of byName.get(name)?.dependsOn ?? []) add(dependencyName(dependency));
  };
  for (const name of names) add(name);
  return chosen;
}

/**
 * The shortest cycle that would exist if `name` depended on `dependsOn`, from `name` to `name`; undefined if
 * none. `dependenciesOf` returns the dependencies of another service, which may be unknown.
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
  const dependencies = new Map(services.map(({ name, dependsOn }) => [name, dependsOn.map(dependencyName)]));
  for (const [name, names] of dependencies) {
    const cycle = dependencyCycle(name, names, (other) => dependencies.get(other) ?? []);
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
      if (!service.dependsOn.some((one) => dependencyName(one) === next) || found.has(service.name)) continue;
      found.add(service.name);
      waiting.push(service.name);
    }
  }
  return found;
}
