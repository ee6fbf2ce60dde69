// Connections to the cloud's own address that have not shown its token: docs/reference.md "Connections".
import net from 'node:net';
import tls from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { HttpExchange } from '../../../src/front/server/http_server.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { get, serve, text, tlsFiles } from './raw_server.ts';

const handle = (x: HttpExchange): void => {
  if (x.path === '/trusted') x.markTrusted();
  text(x, 'fine');
};

describe.each(['plain', 'tls'] as const)('unauthenticated connections (%s)', (kind) => {
  async function start() {
    const files = kind === 'tls' ? { tls: tlsFiles() } : {};
    const { port } = await serve('node:http', handle, { maxStrangers: 3, ...files });
    const connect = async (path?: string) => {
      const socket =
        kind === 'tls'
          ? tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
          : net.connect(port, '127.0.0.1');
      afterThisTest(() => void socket.destroy());
      let isOpen = true;
      socket.on('error', () => {});
      socket.on('close', () => {
        isOpen = false;
      });
      await new Promise((resolve) => socket.on(kind === 'tls' ? 'secureConnect' : 'connect', resolve));
      const ask = async (asked: string): Promise<string> => {
        socket.write(get(asked));
        return new Promise((resolve) => socket.once('data', (part) => resolve(part.toString('latin1'))));
      };
      if (path) expect(await ask(path)).toContain('200 OK');
      return { ask, isOpen: () => isOpen };
    };
    return { port, connect };
  }

  it('lose the oldest one when there are too many, while those with a token remain', async () => {
    const { connect } = await start();
    const known = await connect('/trusted');
    const strangers: { isOpen: () => boolean }[] = [];
    for (let count = 0; count < 6; count += 1) strangers.push(await connect('/'));
    await eventually(() => strangers.filter(({ isOpen }) => isOpen()).length === 3);
    expect(strangers.map(({ isOpen }) => isOpen())).toEqual([false, false, false, true, true, true]);
    expect(await known.ask('/')).toContain('200 OK');
  });

  it('do not prevent a client with a token from connecting', async () => {
    const { port, connect } = await start();
    for (let count = 0; count < 10; count += 1) {
      const idle = net.connect(port, '127.0.0.1');
      afterThisTest(() => void idle.destroy());
      idle.on('error', () => {});
      await new Promise((resolve) => idle.on('connect', resolve));
    }
    expect(await (await connect('/trusted')).ask('/')).toContain('200 OK');
  });
});
