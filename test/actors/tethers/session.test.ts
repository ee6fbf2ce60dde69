// One client of a tether, without sockets.
import { expect, it } from 'vitest';
import { Session, type SessionOwner } from '../../../src/actors/tethers/session.ts';
import type { SessionClient } from '../../../src/actors/tethers/session_client.ts';
import type { ForwardStream } from '../../../src/adapters/portforward/transport.ts';
import { virtualClock } from '../../kit/actors.ts';
import { heldConnections } from './tether_kit.ts';

const ignore = (): void => undefined;
const CLIENT: SessionClient = {
  isPaused: false,
  bufferedBytes: 0,
  ...{ listen: ignore, pause: ignore, resume: ignore, write: ignore, end: ignore },
  ...{ reset: ignore, destroy: ignore, isGone: () => false },
};

it('sends in one piece what a client has sent in many while it waited', () => {
  const owner: SessionOwner = {
    clock: virtualClock(),
    held: heldConnections(),
    halfClosedTimeoutMs: null,
    ...{ onBytes: ignore, onForwardFailed: ignore, onAnswered: ignore, onClosed: ignore },
  };
  const written: string[] = [];
  const stream: ForwardStream = {
    write: (bytes) => written.push(bytes.toString()) > 0,
    ...{ end: ignore, pause: ignore, resume: ignore, destroy: ignore },
  };
  const session = new Session(CLIENT, owner);
  for (let piece = 0; piece < 100; piece += 1) session.onClientData(Buffer.from('x'));
  session.forward(() => stream);
  session.onOpened(stream);
  session.onClientData(Buffer.from('more'));
  expect(written).toEqual(['x'.repeat(100), 'more']);
});
