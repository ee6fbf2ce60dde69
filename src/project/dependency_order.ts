// The order that dependencies make.

interface DependentService {
  name: string;
  dependsOn: readonly string[];
}

/** A cycle of dependencies, in order, or undefined. Names that are not there order nothing. */
export function findDependencyCycle(services: readonly DependentService[]): string[] | undefined {
  const byName = new Map(services.map((service) => [service.name, service]));
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (name: string): string[] | undefined => {
    const at = path.indexOf(name);
    if (at >= 0) return path.slice(at);
    if (done.has(name)) return undefined;
    path.push(name);
    for (const dependency of byName.get(name)?.dependsOn ?? []) {
      const found = visit(dependency);
      if (found) return found;
    }
    path.pop();
    done.add(name);
    return undefined;
  };
  for (const { name } of services) {
    const found = visit(name);
    if (found) return found;
  }
  return undefined;
}

/** `names` and everything they depend on, each once. */
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
 * Runs `work` for every service as soon as it is done for those it depends on. What depends on a failure is
 * not run; the reply has an outcome for every service: `done`, `failed` with the error, or `skipped` with the
 * name it needed.
 */
export async function runInDependencyOrder<S extends DependentService>(
  services: readonly S[],
  work: (service: S) => Promise<void>,
): Promise<Map<string, { done: true } | { failed: unknown } | { skipped: string }>> {
  type Outcome = { done: true } | { failed: unknown } | { skipped: string };
  const byName = new Map(services.map((service) => [service.name, service]));
  const runs = new Map<string, Promise<Outcome>>();
  const run = (service: S): Promise<Outcome> => {
    const started = runs.get(service.name);
    if (started) return started;
    const running = (async (): Promise<Outcome> => {
      const needs = service.dependsOn.flatMap((name) => byName.get(name) ?? []);
      const outcomes = await Promise.all(needs.map(async (need) => ({ need, outcome: await run(need) })));
      const missing = outcomes.find(({ outcome }) => !('done' in outcome));
      if (missing) return { skipped: missing.need.name };
      try {
        await work(service);
        return { done: true };
      } catch (failed) {
        return { failed };
      }
    })();
    runs.set(service.name, running);
    return running;
  };
  const outcomes = await Promise.all(
    services.map(async (one): Promise<[string, Outcome]> => [one.name, await run(one)]),
  );
  return new Map(outcomes);
}

/** The same services with every dependency turned round: what depends on one comes before it. */
export function reverseDependencies<S extends DependentService>(
  services: readonly S[],
): (S & DependentService)[] {
  return services.map((service) => ({
    ...service,
    dependsOn: services.filter(({ dependsOn }) => dependsOn.includes(service.name)).map(({ name }) => name),
  }));
}
