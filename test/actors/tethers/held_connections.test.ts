// docs/reference.md "Connections of a tether": what is kept of clients that wait, alone and together.
import { expect, it } from 'vitest';
import { HeldConnections, Replay } from '../../../src/actors/tethers/held_connections.ts';

it('a limited amount of data of one client is kept for another attempt', () => {
  const replay = new Replay(new HeldConnections({ maxConnections: 1, maxBytes: 1_000 }), 100);
  expect([replay.hasRoomFor(100), replay.hasRoomFor(101)]).toEqual([true, false]);
  replay.push(Buffer.alloc(60));
  expect([replay.hasRoomFor(40), replay.hasRoomFor(41), replay.isFull]).toEqual([true, false, false]);
  replay.push(Buffer.alloc(40));
  expect([replay.hasRoomFor(1), replay.isFull]).toEqual([false, true]);
});

it('a limited amount of data of all clients together is kept, and freed when they are served', () => {
  const held = new HeldConnections({ maxConnections: 10, maxBytes: 100 });
  const [one, two] = [new Replay(held, 80), new Replay(held, 80)];
  one.push(Buffer.alloc(50));
  two.push(Buffer.alloc(50));
  expect([held.keptBytes, held.isFull, one.isFull, two.hasRoomFor(1)]).toEqual([100, true, true, false]);
  one.clear();
  expect([held.keptBytes, two.isFull, two.hasRoomFor(30), one.isEmpty]).toEqual([50, false, true, true]);
});
