// The order of a group: properties of every acyclic graph, and of the walk over it.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DependencyOrder, type Member, walkInOrder } from '../../src/actors/dependency_order.ts';
import { settle } from '../kit/actors.ts';

/** Members whose dependences point to earlier ones only, some to names outside, some twice. */
const graph: fc.Arbitrary<Member[]> = fc
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

const within = (members: readonly Member[]): Member[] => {
  const names = new Set(members.map(({ name }) => name));
  return members.map(({ name, dependsOn }) => ({
    name,
    dependsOn: dependsOn.filter((other) => names.has(other)),
  }));
};

/** The order in which everything is given when each one is done as soon as it is given. */
function sequence(order: DependencyOrder): string[] {
  const given: string[] = [];
  for (let names = order.takeReady(); names.length > 0; ) {
    given.push(...names);
    names = names.flatMap((name) => order.complete(name));
  }
  return given;
}

describe('an order', () => {
  it('gives everybody once, after all they depend on, and in reverse before them', () => {
    fc.assert(
      fc.property(graph, (members) => {
        const forth = sequence(new DependencyOrder(members));
        const back = sequence(new DependencyOrder(members, true));
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

  it('gives a member the moment the last one it waits for is done', () => {
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

  it('has the members of a cycle and those behind it as the rest, once', () => {
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

describe('a walk', () => {
  it('begins nothing after a failure, awaits what is under way, and throws the first error', async () => {
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

  it('does not hang on a cycle', async () => {
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

  it('ends without an error when it is halted', async () => {
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
