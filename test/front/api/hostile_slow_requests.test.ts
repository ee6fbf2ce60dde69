// Requests that never end, through real sockets, on both servers: docs/reference.md "Bodies".
import { expect, it } from 'vitest';
import { SERVERS, startFront } from '../kit.ts';

// Both at once, as each takes ten seconds of waiting.
it('both servers drop bodies that never arrive after 8 seconds, and slow heads after 10', async () => {
  await Promise.all(SERVERS.map(dropsSlowRequests));
});

async function dropsSlowRequests(server: (typeof SERVERS)[number]): Promise<void> {
  const front = await startFront({ server });
  const head = `POST /v1/services HTTP/1.1\r\nHost: localhost:${front.port}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n`;
  const bodies = Promise.all([front.raw(head), front.raw(`${head}{"name":`)]);
  const slow = front.raw('GET /v1/services HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
  expect((await front.request('GET', '/livez')).status, server).toBe(200);
  for (const { text, closed } of await bodies) {
    expect([text.slice(0, 12), closed], server).toEqual(['HTTP/1.1 408', true]);
    expect(text, server).toContain('request_timeout');
  }
  const { text, closed } = await slow;
  expect(closed, server).toBe(true);
  expect(text, server).toMatch(/^(HTTP\/1\.1 408 |$)/);
  expect((await front.request('GET', '/livez')).status, server).toBe(200);
}
