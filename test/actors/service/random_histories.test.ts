// Clients, processes, the disk and the connection to the host act in random order. Afterwards every ask has
// been answered, the service matches its process, and every run has its events, once. A failure prints its
// seed.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { quiet, type Supervised, supervise } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

const READY = 'http://localhost:3000/';
const RESTARTS = ['no', 'on-failure', 'always'] as const;

/** Possible actions by name; the number is their argument. */
const HAPPENINGS: Record<string, (world: Asked, size: number) => void | Promise<void>> = {
  start: ({ world, keep }, size) =>
    keep(world.ref.ask('start', { timeoutMs: size * 40, wait: size % 3 > 0, join: size % 2 > 0 })),
  stop: ({ world, keep }, size) => keep(world.ref.ask('stop', { graceMs: size * 20 })),
  restart: ({ world, keep }) => keep(world.ref.ask('restart', { timeoutMs: null, graceMs: null })),
  register: ({ world, keep }, size) => {
    const restart = RESTARTS[size % 3] ?? 'no';
    const stored = {
      spec: spec({ ready: size % 2 ? READY : null, restart, startTimeout: 2_000 }),
      revision: size,
    };
    keep(world.store.table('services').put('web', stored));
    keep(world.ref.ask('changed', { stored }));
  },
  exit: ({ world }, size) => (size === 5 ? world.host.exit(null, 'SIGKILL') : world.host.exit(size % 3)),
  pass: ({ world }) => world.probe.pass(),
  refuse: ({ world }) => {
    world.probe.outcome = { status: 500, error: 'it answered 500' };
  },
  slow: ({ world }, size) => {
    world.host.spawnMs = size * 15;
    world.host.stopMs = size * 60;
  },
  stillborn: ({ world }, size) => {
    world.host.stillborn = size % 2 ? size % 3 : null;
  },
  port: ({ world }, size) => {
    world.ports.holder = size % 2 ? 'other' : null;
  },
  disk: ({ world }, size) => {
    world.store.broken = size % 2 ? fail('storage_full', 'full') : null;
    world.broken.events = size % 3 ? fail('storage_full', 'full') : null;
  },
  cut: ({ world }) => world.cut(),
  join: ({ world, keep }) => {
    world.cut();
    world.join();
    keep(world.ref.ask('adopt', {}));
    world.host.tellEnd();
  },
  /** The daemon is killed: the actor is lost with its work, and restarts at the next message. */
  daemon: async ({ world, keep }) => {
    const ended = world.services.node.end('service:web');
    await world.advance(2_000);
    await ended;
    keep(world.ref.ask('adopt', {}));
  },
  time: ({ world }, size) => world.advance(size * size * 30),
};

interface Asked {
  world: Supervised;
  keep(answer: Promise<unknown>): void;
}

const step = fc.tuple(
  fc.constantFrom(...Object.keys(HAPPENINGS)),
  fc.integer({ min: 0, max: 5 }),
  fc.boolean(),
);

async function heal({ world, keep }: Asked): Promise<void> {
  world.cut();
  world.join();
  world.store.broken = null;
  world.broken.events = null;
  world.ports.holder = null;
  world.host.stillborn = null;
  world.probe.pass();
  keep(world.ref.ask('adopt', {}));
  await world.advance(70_000);
}

function check(world: Supervised): void {
  const { host, journal } = world;
  const { status, process } = world.state();
  expect({ status, pid: process?.pid }).toEqual(
    host.alive
      ? { status: 'running', pid: host.row?.pid }
      : { status: expect.stringMatching(/^(stopped|crashed)$/) },
  );
  if (!host.alive) expect(host.row).toBeUndefined();
  const made = host.made;
  for (const run of made) {
    const types = journal.filter((event) => event.run === run).map(({ type }) => type);
    const lives = host.alive && host.row?.run === run;
    const ends = types.filter((type) => type === 'service.stopped' || type === 'service.crashed');
    expect({ run, ends: ends.length }).toEqual({ run, ends: lives ? 0 : 1 });
    if (lives) expect(types).toEqual(['service.started']);
    else expect(types.indexOf('service.started')).toBeLessThan(1);
  }
  expect(world.probe.open).toBe(0);
}

it('a service keeps its guarantees under random events', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...RESTARTS),
      fc.array(step, { minLength: 3, maxLength: 25 }),
      async (restart, steps) => {
        const world = await supervise({ spec: { restart, ready: READY, startTimeout: 2_000 } });
        await world.begin();
        const open = new Set<Promise<unknown>>();
        const keep = (answer: Promise<unknown>): void => {
          const settled: Promise<unknown> = answer.then(
            () => open.delete(settled),
            (error: unknown) => {
              open.delete(settled);
              expect(isFailure(error)).toBe(true);
            },
          );
          open.add(settled);
        };
        const asked = { world, keep };
        for (const [name, size, wait] of steps) {
          await HAPPENINGS[name]?.(asked, size);
          if (wait) await quiet();
        }
        await heal(asked);
        check(world);
        expect(open.size).toBe(0);
        const stopped = world.ref.ask('stop', { graceMs: 0 });
        await world.advance(1_000);
        expect(await stopped).toMatchObject({ status: 'stopped' });
        expect(world.host.alive).toBe(false);
        expect(world.services.crashes).toEqual([]);
      },
    ),
    { numRuns: Number(process.env['BERTH_TEST_RUNS'] ?? 80) },
  );
});
