// The daemon's side of the connection to the process host, in virtual time.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { reconnectHost } from '../../../src/adapters/host/host_connection.ts';
import { readFirstLine } from '../../../src/adapters/host/host_socket.ts';
import { HELLO_TIMEOUT_MS } from '../../../src/protocol/host_handshake.ts';
import { newRunId } from '../../../src/protocol/names.ts';
import { settle, virtualClock } from '../../kit/actors.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Both ends of a connection. */
async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer().listen(join(tmpdir(), `berth-${newRunId(Date.now())}.sock`));
  await once(server, 'listening');
  const client = connect(server.address() as string);
  const [accepted] = await once(server, 'connection');
  closers.push(() => {
    for (const socket of [client, accepted]) socket.destroy();
    server.close();
  });
  return [client, accepted];
}

describe('the first line of a socket', () => {
  test('is given up when it does not arrive in time', async () => {
    const clock = virtualClock();
    const [reader, writer] = await socketPair();
    let outcome: unknown = 'waiting';
    readFirstLine(reader, clock).catch((error: Error) => {
      outcome = error.message;
    });
    writer.write('half a line');
    await clock.advance(HELLO_TIMEOUT_MS - 1);
    await settle();
    expect(outcome).toBe('waiting');
    await clock.advance(1);
    await settle();
    expect(outcome).toBe('no line in time');
  });

  test('leaves the bytes after it to be read', async () => {
    const [reader, writer] = await socketPair();
    writer.write('hello\nmore');
    expect(await readFirstLine(reader)).toBe('hello');
    const [rest] = await once(reader.resume(), 'data');
    expect(String(rest)).toBe('more');
  });
});

describe('a lost host', () => {
  test('is tried until it answers, and each new reason is reported once', async () => {
    const clock = virtualClock();
    const reasons = ['gone', 'gone', 'refused'];
    const reported: string[] = [];
    let host: string | undefined;
    void reconnectHost(
      async () => {
        const reason = reasons.shift();
        if (reason !== undefined) throw new Error(reason);
        return 'host';
      },
      () => false,
      (line) => reported.push(line),
      clock,
    ).then((value) => {
      host = value;
    });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await settle();
      expect(host).toBeUndefined();
      await clock.advance(1_000);
    }
    await settle();
    expect(host).toBe('host');
    expect(reported.map((line) => line.split(': ').at(-1))).toEqual(['gone', 'refused']);
  });

  test('is not tried after the thread has ended', async () => {
    const clock = virtualClock();
    let isOver = false;
    const found = reconnectHost(
      () => Promise.reject(new Error('gone')),
      () => isOver,
      () => {},
      clock,
    );
    await settle();
    isOver = true;
    await clock.advance(1_000);
    expect(await found).toBeUndefined();
  });
});
