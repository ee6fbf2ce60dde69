// Guarantee 5: a thrown Failure is a reply; any other error is a crash. The caller gets `crashed`, the scope
// closes last-first, `init` runs again after a pause, queued messages stay, and the message that caused the
// crash is not retried.
import { expect, it } from 'vitest';
import { actor } from '../../src/runtime/actor.ts';
import { afterThisTest, settle, stopInTime, twoWorlds, virtualClock, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';
import { untypedNode, untypedRef } from '../kit/untyped_node.ts';

it('a Failure is a reply, and the incarnation continues', async () => {
  const { start } = world();
  const { type, log } = probe();
  const ref = await start('a', type, null);
  expect(await codeOf(ref.ask('fail', { code: 'no', detail: null }))).toBe('no');
  await ref.ask('echo', { value: 1 });
  expect(log).toEqual(['init 1', 'echo 1']);
});

it('a crash replies to its caller, closes the scope, restarts after a pause, and keeps the queue', async () => {
  const { near, far } = twoWorlds();
  const { type, log } = probe();
  await far.start('far', type, null);
  const ref = near.ref<Probe>('far');
  const codes = [
    codeOf(ref.ask('boom', { text: 'one' })),
    codeOf(ref.ask('echo', { value: 1 })),
    codeOf(ref.ask('echo', { value: 2 })),
  ];
  expect(await codes[0]).toBe('crashed');
  await settle();
  expect(log).toEqual(['init 1', 'close 1']);
  await far.clock.advance(10);
  expect(await Promise.all(codes)).toEqual(['crashed', 'none', 'none']);
  expect(log).toEqual(['init 1', 'close 1', 'init 2', 'echo 1', 'echo 2']);
  expect(far.crashes.splice(0)).toMatchObject([{ address: 'far', error: { message: 'one' }, ended: false }]);
});

it('the pause doubles with every crash in the window', async () => {
  const { start, clock, crashes } = world();
  const { type, log } = probe({ restarts: { max: 10, withinMs: 10_000 } });
  const ref = await start('a', type, null);
  for (const [crash, pause] of [10, 20, 40, 80].entries()) {
    await codeOf(ref.ask('boom', { text: 'again' }));
    await clock.advance(pause - 1);
    expect(log.at(-1)).toBe(`close ${crash + 1}`);
    await clock.advance(1);
    expect(log.at(-1)).toBe(`init ${crash + 2}`);
  }
  expect(crashes.splice(0)).toHaveLength(4);
});

it('a crash outside a handler settles every open request with `crashed`, including those of `replyLater`', async () => {
  const { start, clock, crashes } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const codes = [codeOf(ref.ask('later', { key: 'x' })), codeOf(ref.ask('later', { key: 'y' }))];
  await ref.ask('crash', { text: 'outside' });
  codes.push(codeOf(ref.ask('hold', { key: 'z' })), codeOf(ref.ask('echo', { value: 1 })));
  await clock.advance(0);
  expect(await Promise.all(codes.slice(0, 3))).toEqual(['crashed', 'crashed', 'crashed']);
  // The code of the old incarnation still runs in `hold`: the new one waits for it, so that two messages are
  // never open at once.
  await clock.advance(1000);
  expect(log.filter((line) => line.startsWith('init'))).toEqual(['init 1']);
  for (const key of ['x', 'y', 'z']) open(key);
  await clock.advance(10);
  expect(await codes[3]).toBe('none');
  expect(log.slice(-3)).toEqual(['end z', 'init 2', 'echo 1']);
  expect(crashes.splice(0)).toHaveLength(1);
});

it('code that never settles delays the new incarnation by at most drainMs, and is reported', async () => {
  const { start, clock, crashes } = world();
  const { type, open } = probe({ drainMs: 300 });
  const ref = await start('a', type, null);
  await ref.ask('crash', { text: 'outside' });
  const held = codeOf(ref.ask('hold', { key: 'x' }));
  const next = codeOf(ref.ask('echo', { value: 1 }));
  await clock.advance(0);
  expect(await held).toBe('crashed');
  await clock.advance(310);
  expect(await next).toBe('none');
  expect(crashes.splice(0)).toMatchObject([
    { error: { message: 'outside' } },
    { error: { message: 'its scope did not close in time' } },
  ]);
  open('x');
});

interface Opener {
  open(message: { names: string[]; fail: string | null }): null;
  crash(message: null): null;
}

it('the scope closes in reverse order, and an error of one closer is reported and does not affect the others', async () => {
  const closed: string[] = [];
  const opener = actor<Opener, null>('opener', (context) => ({
    open: ({ names, fail }) => {
      for (const name of names) {
        context.scope.defer(async () => {
          await settle();
          closed.push(name);
          if (name === fail) throw new Error(`closing ${name}`);
        });
      }
      context.scope.defer(() => {
        closed.push('given back');
      })();
      return null;
    },
    crash: () => {
      throw new Error('crash');
    },
  }));
  const { start, clock, crashes } = world();
  const ref = await start('a', opener, null);
  await ref.ask('open', { names: ['first', 'second', 'third'], fail: 'second' });
  expect(closed.splice(0)).toEqual(['given back']);
  await codeOf(ref.ask('crash', null));
  while (closed.length < 3) await settle();
  await clock.advance(100);
  expect(closed).toEqual(['third', 'second', 'first']);
  expect(crashes.splice(0)).toMatchObject([
    { error: { message: 'crash' } },
    { error: { message: 'closing second' } },
  ]);
});

interface Zombie {
  work(message: null): null;
  seen(message: { by: number }): null;
}

it('an ended incarnation sends nothing: its tells are dropped, its asks refused', async () => {
  const { node, start, stand, clock, crashes } = world();
  const lower = await stand<Probe>('lower');
  let goOn = () => {};
  let refused: unknown;
  const zombie = actor<Zombie, null>(
    'zombie',
    (context) => ({
      work: async () => {
        const target = untypedRef<Probe>(context, 'lower');
        setImmediate(() => context.crash(new Error('under way')));
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        target.tell('echo', { value: 'sent by an ended incarnation' });
        refused = await codeOf(target.ask('echo', { value: 'asked by an ended incarnation' }));
        return null;
      },
      seen: () => null,
    }),
    { drainMs: 50 },
  );
  const ref = await start('a', zombie, null);
  expect(await codeOf(ref.ask('work', null))).toBe('crashed');
  await clock.advance(100);
  goOn();
  await settle();
  expect(refused).toBe('gone');
  expect(lower.received).toEqual([]);
  expect(node.name).toBe('test');
  crashes.splice(0);
});

it('a timer ends with its incarnation, and an error in its callback crashes only that actor', async () => {
  const fired: string[] = [];
  const ticker = actor<{ start(message: { crash: boolean }): null }, null>('ticker', (context) => ({
    start: ({ crash }) => {
      context.clock.every(10, () => fired.push('tick'));
      context.clock.after(25, () => {
        fired.push('once');
        if (crash) throw new Error('in a timer');
      });
      return null;
    },
  }));
  const { start, clock, crashes } = world();
  const ref = await start('a', ticker, null);
  await ref.ask('start', { crash: true });
  await clock.advance(100);
  expect(fired).toEqual(['tick', 'tick', 'once']);
  expect(crashes.splice(0)).toMatchObject([{ address: 'a', error: { message: 'in a timer' }, ended: false }]);
});

it('a fired timer leaves the scope, so an actor that sets timers for years keeps none', async () => {
  const clock = virtualClock();
  let cancelled = 0;
  const after = (ms: number, callback: () => void) => {
    const cancel = clock.after(ms, callback);
    return () => {
      cancelled += 1;
      cancel();
    };
  };
  const node = untypedNode({ name: 'test', nodeOf: () => 'test', clock: { ...clock, after } });
  afterThisTest(() => stopInTime(node, clock).then(() => {}));
  const setter = actor<{ set(message: null): null }, null>('setter', (context) => ({
    set: () => {
      context.clock.after(5, () => {});
      return null;
    },
  }));
  const ref = await node.start('a', setter, null);
  await ref.ask('set', null);
  const before = cancelled;
  await clock.advance(5);
  expect(cancelled).toBe(before + 1);
});

it('a reply that is not plain data is a crash, and the caller does not wait forever', async () => {
  const { start, crashes, clock } = world();
  const odd = actor<{ odd(message: null): { value: unknown } }, null>('odd', () => ({
    odd: () => ({ value: Symbol('no data') }),
  }));
  const ref = await start('a', odd, null);
  expect(await codeOf(ref.ask('odd', null))).toBe('crashed');
  await clock.advance(10);
  expect(crashes.splice(0)).toHaveLength(1);
});
