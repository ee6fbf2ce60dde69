// WebSockets that are dialled.
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { dialWebSocket } from '../../src/adapters/websocket.ts';
import { afterThisTest } from '../kit/actors.ts';

it('a WebSocket client gives up a server that sends data all the time and never responds', async () => {
  const server = createServer((socket) => {
    const talk = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 5);
    socket.on('error', () => undefined);
    socket.on('close', () => clearInterval(talk));
    afterThisTest(() => void socket.destroy());
  });
  afterThisTest(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const dialled = dialWebSocket({
    ...{ url: `ws://127.0.0.1:${port}/`, protocol: 'a', headers: {} },
    ...{ maxMessageBytes: 1_024, timeoutMs: 100 },
  });
  await expect(dialled).rejects.toThrow('no answer in 100 ms');
});
