// The order of dependsOn: properties of every acyclic graph, of the walk over it, and of cycles.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DependencyOrder,
  type DependentService,
  dependencyCycle,
  dependencyName,
  findDependencyCycle,
  reverseDependencies,
  runInDependencyOrder,
  walkInOrder,
  withDependencies,
} from '../../src/protocol/dependency_order.ts';
import { settle } from '../kit/actors.ts';

/** DependentServices that depend only on earlier ones; some name unknown services, some name one twice. */
const graph: fc.Arbitrary<DependentService[]> = fc
  .integer({ min: 1, max: 30 })
  .chain((size) =>
    fc.tuple(
      ...Array.from({ length: size }, (_, index) =>
        fc.array(fc.integer({ min: -2, max: Math.max(-1, index - 1) })),
      ),
    ),
  )
  .map((rows) =>
    rows.map((row, index) => ({ name: `s${index}`, dependsOn: row.map((other) => `s${other}`) })),
  );

const within = (members: readonly DependentService[]): { name: string; dependsOn: string[] }[] => {
  const names = new Set(members.map(({ name }) => name));
  return members.map(({ name, dependsOn }) => ({
    name,
    dependsOn: dependsOn.map(dependencyName).filter((other) => names.has(other)),
  }));
};

/** The order of release when each member is done as soon as it is released. */
function sequence(order: DependencyOrder): string[] {
  const given: string[] = [];
  for (let names = order.takeReady(); names.length > 0; ) {
    given.push(...names);
    names = names.flatMap((name) => order.complete(name));
  }
  return given;
}

describe('a dependency order', () => {
  it('releases every member once, after its dependencies, and before them in reverse', () => {
    fc.assert(
      fc.property(graph, (members) => {
        const forth = sequence(new DependencyOrder(members));
        const back = sequence(new DependencyOrder(reverseDependencies(members)));
        const names = members.map(({ name }) => name).sort();
        expect([...forth].sort()).toEqual(names);
        expect([...back].sort()).toEqual(names);
        for (const { name, dependsOn } of within(members)) {
          for (const other of dependsOn) {
            expect(forth.indexOf(other)).toBeLessThan(forth.indexOf(name));
            expect(back.indexOf(other)).toBeGreaterThan(back.indexOf(name));
          }
        }
      }),
    );
  });

  it('releases a member when each dependency reaches its condition', () => {
    const order = new DependencyOrder([
      { name: 'db', dependsOn: [] },
      { name: 'early', dependsOn: [{ name: 'db', condition: 'started' }] },
      {
        name: 'late',
        dependsOn: [
          { name: 'db', condition: 'ready' },
          { name: 'early', condition: 'started' },
        ],
      },
    ]);
    expect(order.takeReady()).toEqual(['db']);
    expect(order.complete('db', 'started')).toEqual(['early']);
    expect(order.complete('db', 'started')).toEqual([]);
    expect(order.complete('early', 'started')).toEqual([]);
    expect(order.complete('db', 'done')).toEqual(['late']);
  });

  it('names a cycle whatever its conditions', () => {
    const cycle = findDependencyCycle([
      { name: 'a', dependsOn: [{ name: 'b', condition: 'started' }] },
      { name: 'b', dependsOn: [{ name: 'c', condition: 'completed' }] },
      { name: 'c', dependsOn: ['a'] },
    ]);
    expect(cycle).toEqual(['a', 'b', 'c', 'a']);
  });

  it('runs what needs a failed service only started, and skips what needs more', async () => {
    const services = [
      { name: 'db', dependsOn: [] },
      { name: 'early', dependsOn: [{ name: 'db', condition: 'started' as const }] },
      { name: 'late', dependsOn: ['db'] },
    ];
    const outcomes = await runInDependencyOrder(services, async ({ name }, onStarted) => {
      onStarted();
      if (name === 'db') throw new Error('no');
    });
    expect(outcomes.get('early')).toEqual({ done: true });
    expect(outcomes.get('late')).toEqual({ skipped: 'db' });
  });

  it('releases a member as soon as its last dependency is done', () => {
    fc.assert(
      fc.property(graph, (members) => {
        const order = new DependencyOrder(members);
        const done = new Set<string>();
        const open = new Set(order.takeReady());
        const rows = within(members);
        while (open.size > 0) {
          const [next = ''] = open;
          open.delete(next);
          done.add(next);
          for (const name of order.complete(next)) open.add(name);
          const may = rows.filter(
            ({ name, dependsOn }) => !done.has(name) && dependsOn.every((other) => done.has(other)),
          );
          expect([...open].sort()).toEqual(may.map(({ name }) => name).sort());
        }
      }),
    );
  });

  it('returns the members of a cycle and those that depend on them as the rest, once', () => {
    const order = new DependencyOrder([
      { name: 'a', dependsOn: ['b'] },
      { name: 'b', dependsOn: ['a'] },
      { name: 'c', dependsOn: ['b', 'd'] },
      { name: 'd', dependsOn: [] },
      { name: 'self', dependsOn: ['self'] },
    ]);
    expect(order.takeReady()).toEqual(['d', 'self']);
    expect(order.complete('d')).toEqual([]);
    expect(order.takeRemaining().sort()).toEqual(['a', 'b', 'c']);
    expect([order.takeRemaining(), order.complete('b'), order.complete('a')]).toEqual([[], [], []]);
  });
});

describe('a walk in dependency order', () => {
  it('starts nothing after a failure, waits for what is running, and throws the first error', async () => {
    await fc.assert(
      fc.asyncProperty(graph, fc.nat(), async (members, seed) => {
        const bad = `s${seed % members.length}`;
        const begun: string[] = [];
        let open = 0;
        let failed = false;
        const result = walkInOrder(new DependencyOrder(members), async (name) => {
          expect(failed).toBe(false);
          begun.push(name);
          open += 1;
          await settle();
          open -= 1;
          if (name !== bad) return;
          failed = true;
          throw new Error(name);
        });
        await expect(result).rejects.toThrow(bad);
        expect(open).toBe(0);
        const behind = within(members).filter(({ dependsOn }) => dependsOn.includes(bad));
        for (const { name } of behind) expect(begun).not.toContain(name);
      }),
      { numRuns: 50 },
    );
  });

  it('ends despite a cycle', async () => {
    const seen: string[] = [];
    const members = [
      { name: 'a', dependsOn: ['b'] },
      { name: 'b', dependsOn: ['a'] },
    ];
    await walkInOrder(new DependencyOrder(members), async (name) => {
      seen.push(name);
    });
    expect(seen.sort()).toEqual(['a', 'b']);
  });

  it('ends without an error when it is aborted', async () => {
    const seen: string[] = [];
    const members = [
      { name: 'a', dependsOn: [] },
      { name: 'b', dependsOn: ['a'] },
    ];
    await walkInOrder(
      new DependencyOrder(members),
      async (name) => {
        seen.push(name);
      },
      () => seen.length > 0,
    );
    expect(seen).toEqual(['a']);
  });
});

describe('a cycle of dependsOn', () => {
  const graph = (edges: Record<string, string[]>) => (name: string) => edges[name] ?? [];

  it('is named from the member that closes it', () => {
    expect(dependencyCycle('a', ['b'], graph({ b: ['a'] }))).toEqual(['a', 'b', 'a']);
    expect(dependencyCycle('a', ['a'], graph({}))).toEqual(['a', 'a']);
    expect(dependencyCycle('a', ['x', 'b'], graph({ b: ['c'], c: ['d', 'a'], d: ['a'] }))).toEqual([
      'a',
      'b',
      'c',
      'a',
    ]);
  });

  it('is not reported for an unknown name, or for another cycle', () => {
    expect(dependencyCycle('a', ['nobody'], graph({}))).toBeUndefined();
    expect(dependencyCycle('a', ['b'], graph({ b: ['c'], c: ['b'] }))).toBeUndefined();
  });

  it('is found in a chain of 10,000', () => {
    const of = (name: string) => [String(Number(name) + 1)];
    expect(dependencyCycle('0', ['1'], (name) => (name === '9999' ? ['0'] : of(name)))).toHaveLength(10_001);
  });

  it('is found exactly when there is one', () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const edges = fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)), { maxLength: 10 });
    fc.assert(
      fc.property(edges, (pairs) => {
        const of = (name: string) => pairs.filter(([from]) => from === name).map(([, to]) => to);
        const found = dependencyCycle('a', of('a'), of);
        // The transitive closure, by brute force.
        let reach = new Set(of('a'));
        for (let step = 0; step < names.length; step += 1)
          reach = new Set([...reach, ...[...reach].flatMap(of)]);
        expect(found !== undefined).toBe(reach.has('a'));
        for (const [index, name] of (found ?? []).slice(1).entries()) {
          expect(of(found?.[index] ?? '')).toContain(name);
        }
      }),
    );
  });
});

const servicesOf = (rows: Record<string, string[]>) =>
  Object.entries(rows).map(([name, dependsOn]) => ({ name, dependsOn }));

describe('services with dependencies', () => {
  it('report a cycle of any length, or none', () => {
    expect(findDependencyCycle(servicesOf({ a: ['b'], b: ['c'], c: ['b'] }))).toEqual(['b', 'c', 'b']);
    expect(findDependencyCycle(servicesOf({ a: ['a'] }))).toEqual(['a', 'a']);
    expect(findDependencyCycle(servicesOf({ a: ['b', 'c'], b: ['c'], c: ['elsewhere'] }))).toBeUndefined();
  });

  it('include their dependencies', () => {
    const all = servicesOf({ web: ['api'], api: ['db'], db: [], docs: [] });
    expect([...withDependencies(all, ['web'])]).toEqual(['web', 'api', 'db']);
  });

  it('run in order, in parallel where possible', async () => {
    const log: string[] = [];
    const outcomes = await runInDependencyOrder(
      servicesOf({ web: ['api', 'db'], api: ['db'], db: [], docs: [] }),
      async ({ name }) => {
        log.push(`+${name}`);
        await Promise.resolve();
        log.push(`-${name}`);
      },
    );
    expect([...outcomes.values()].every((outcome) => 'done' in outcome)).toBe(true);
    const at = (mark: string) => log.indexOf(mark);
    expect(at('+api')).toBeGreaterThan(at('-db'));
    expect(at('+web')).toBeGreaterThan(at('-api'));
    expect(at('+docs')).toBeLessThan(at('-db'));
  });

  it('are skipped if they depend on one that failed, and only then', async () => {
    const wrong = new Error('no');
    const outcomes = await runInDependencyOrder(
      servicesOf({ web: ['api'], api: ['db'], db: [], docs: [] }),
      async ({ name }) => {
        if (name === 'db') throw wrong;
      },
    );
    expect(Object.fromEntries(outcomes)).toEqual({
      web: { skipped: 'api' },
      api: { skipped: 'db' },
      db: { failed: wrong },
      docs: { done: true },
    });
  });

  it('have their dependencies reversed for stopping', () => {
    const back = reverseDependencies(servicesOf({ web: ['api'], api: ['db'], db: [] }));
    expect(Object.fromEntries(back.map(({ name, dependsOn }) => [name, dependsOn]))).toEqual({
      web: [],
      api: ['web'],
      db: ['api'],
    });
  });
});
