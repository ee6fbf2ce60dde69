// Every message goes through the encoding, also within a node: a message is a copy, bytes stay bytes, special
// keys are harmless, and malformed bytes end the link and nothing else.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { actor, type Pipe } from '../../src/runtime/actor.ts';
import { decodeAllMsgpack, encodeMsgpack } from '../../src/runtime/msgpack.ts';
import { pipePair, settle, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

interface Keeper {
  keep(message: { list: number[] }): { list: number[] };
  bytes(message: { bytes: Uint8Array }): { bytes: Uint8Array; kept: number };
}

it('a change to a message on one side does not affect the other', async () => {
  const { start } = world();
  const kept: number[][] = [];
  const keeper = actor<Keeper, null>('keeper', () => ({
    keep: ({ list }) => {
      kept.push(list);
      return { list };
    },
    bytes: ({ bytes }) => ({ bytes, kept: bytes.length }),
  }));
  const ref = await start('a', keeper, null);
  const list = [1, 2];
  const asked = ref.ask('keep', { list });
  list.push(3);
  const reply = await asked;
  kept[0]?.push(4);
  expect(reply.list).toEqual([1, 2]);
  reply.list.push(5);
  expect(kept).toEqual([[1, 2, 4]]);
});

it('bytes of any size arrive as bytes, and share no memory with the sender', async () => {
  const { start } = world();
  const keeper = actor<Keeper, null>('keeper', () => ({
    keep: (message) => message,
    bytes: ({ bytes }) => ({ bytes: bytes.fill(7), kept: bytes.length }),
  }));
  const ref = await start('a', keeper, null);
  for (const length of [0, 1, 255, 256, 65_536, 3_000_000]) {
    const bytes = new Uint8Array(length).fill(1);
    const reply = await ref.ask('bytes', { bytes });
    expect(reply.bytes).toBeInstanceOf(Uint8Array);
    expect(reply.kept).toBe(length);
    expect(reply.bytes.every((byte) => byte === 7)).toBe(true);
    expect(bytes.every((byte) => byte === 1)).toBe(true);
  }
});

it('keys with a special meaning in JavaScript are plain keys', async () => {
  const { start } = world();
  const { type } = probe();
  const ref = await start('a', type, null);
  const value: unknown = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": "x", "toString": 2}');
  const reply = await ref.ask('echo', { value });
  expect(reply.value).toEqual({ __proto_: { polluted: 1 }, constructor: 'x', toString: 2 });
  expect(Object.getPrototypeOf(reply.value)).toBe(Object.prototype);
  expect(({} as { polluted?: number }).polluted).toBe(undefined);
});

it('an ask that is not plain data fails at the caller and sends nothing', async () => {
  const { start } = world();
  const { type, log } = probe();
  const ref = await start('a', type, null);
  const circle: { self?: unknown } = {};
  circle.self = circle;
  for (const value of [Symbol('x'), circle]) {
    expect(() => ref.ask('echo', { value })).toThrow();
    expect(() => ref.tell('echo', { value })).toThrow();
  }
  await ref.ask('echo', { value: 'after' });
  expect(log).toEqual(['init 1', 'echo "after"']);
});

/** A node, and the far end of a pipe into it. */
function open(): { world: ReturnType<typeof world>; far: Pipe; lost: string[]; received: Uint8Array[] } {
  const there = world({ name: 'node', nodeOf: (address) => (address === 'far' ? 'far' : 'node') });
  const { ends } = pipePair();
  there.node.connect('far', ends[0]);
  const lost: string[] = [];
  const received: Uint8Array[] = [];
  there.node.onPeerLost((_, reason) => lost.push(reason));
  ends[1].receive(
    (bytes) => received.push(bytes),
    () => {},
  );
  return { world: there, far: ends[1], lost, received };
}

const ask = (...fields: unknown[]) => Uint8Array.from(encodeMsgpack([0, ...fields]));

it.each([
  ['an unfinished value', Uint8Array.of(0x92, 1)],
  ['an array longer than its bytes', Uint8Array.of(0xdd, 0xff, 0xff, 0xff, 0xff)],
  ['a string longer than its bytes', Uint8Array.of(0xdb, 0x7f, 0xff, 0xff, 0xff, 65)],
  ['a type that does not exist', Uint8Array.of(0xc1)],
  ['something that is no frame', Uint8Array.from(encodeMsgpack({ a: 1 }))],
  ['a frame of no known kind', Uint8Array.from(encodeMsgpack([9, 1, 'a']))],
  ['an ask without a kind', ask(1, 'a', null, null, 1000)],
  ['an ask with text for a number', ask('1', 'a', 'echo', null, 1000)],
  ['a failure with an object for a code', Uint8Array.from(encodeMsgpack([3, 1, {}, 'x', null]))],
  ['arrays in arrays too deep to read', new Uint8Array(200_000).fill(0x91)],
])('%s ends the link with a reason, and the node continues', async (_, bytes) => {
  const { world: there, far, lost } = open();
  const { type } = probe();
  const ref = await there.start('a', type, null);
  const open1 = codeOf(there.ref<Probe>('far').ask('echo', { value: 1 }));
  await settle();
  far.send(bytes);
  expect(await open1).toBe('gone');
  expect(lost).toHaveLength(1);
  expect(lost[0]).toMatch(/^garbled bytes: /);
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('none');
});

it('nothing after a malformed frame is accepted', async () => {
  const { world: there, far, lost } = open();
  const { type, log } = probe();
  await there.start('a', type, null);
  const tellFrame = (value: number) => encodeMsgpack([1, 'a', 'echo', { value }]);
  far.send(Uint8Array.from(Buffer.concat([tellFrame(1), encodeMsgpack([9]), tellFrame(2)])));
  await settle();
  expect(lost).toEqual(['garbled bytes: not a frame']);
  expect(log).toEqual(['init 1', 'echo 1']);
});

it('unknown replies, addresses and message kinds from outside do not end the link', async () => {
  const { world: there, far, lost, received } = open();
  const { type, log } = probe();
  await there.start('a', type, null);
  const frames = [
    [2, 77, 'nobody asked'],
    [3, 78, 'code', 'nobody asked', null],
    [5, 'nobody watches'],
    [0, 5, 'unknown', 'echo', null, 1000],
    [0, 6, 'a', '__proto__', null, 1000],
    [1, 'a', 'echo', { value: 'told' }],
  ];
  for (const frame of frames) far.send(Uint8Array.from(encodeMsgpack(frame)));
  await settle();
  expect(lost).toEqual([]);
  expect(log).toEqual(['init 1', 'echo "told"']);
  expect(received.flatMap(decodeAllMsgpack)).toEqual([
    [3, 5, 'gone', 'unknown: nobody is there', null],
    [3, 6, 'gone', 'a.__proto__: nobody is there', null],
  ]);
  there.crashes.splice(0);
});

it('no sequence of bytes ends more than the link', async () => {
  const { world: there } = open();
  const ref = await there.start('a', probe().type, null);
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
      const { ends } = pipePair((deliver) => deliver());
      there.node.connect('far', ends[0]);
      ends[1].send(bytes);
      await settle();
      there.crashes.splice(0);
    }),
    { numRuns: 300 },
  );
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('none');
});
