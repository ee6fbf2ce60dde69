// docs/reference.md "Notices": what ntfy and a desktop get, from a real server and a real program.
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { sendNotice } from '../../src/adapters/notice_targets.ts';
import type { NoticeMessage } from '../../src/protocol/notices.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { NOTICE as LIMITS } from '../../src/settings/limits.ts';
import { tempDir, virtualClock } from '../kit/actors.ts';
import { serve } from '../kit/recording_server.ts';

const NEVER = new AbortController().signal;

const NOTICE: NoticeMessage = {
  id: 'n1',
  type: 'agent.state',
  name: 'shop--bot',
  text: 'shop--bot asks: "Überschreiben?" <b>& $(touch x)</b>',
  at: Date.UTC(2030, 0, 1),
  data: '{"state":"blocked"}',
  count: 1,
};

it('notices are posted to ntfy as text, with a title and the token', async () => {
  const server = await serve((_asked, response, count) => response.writeHead(count === 1 ? 200 : 429).end());
  const target = { kind: 'ntfy', url: `${server.url}/my-topic`, token: 'tk_secret' } as const;
  expect(await sendNotice(target, NOTICE, [], NEVER, systemClock)).toBe(null);
  expect(server.asked).toMatchObject([
    {
      method: 'POST',
      path: '/my-topic',
      body: NOTICE.text,
      headers: { title: 'shop--bot: agent.state', authorization: 'Bearer tk_secret' },
    },
  ]);
  const refused = await sendNotice({ ...target, token: '' }, NOTICE, [], NEVER, systemClock);
  expect(refused).toBe('it answers 429');
  expect(server.asked[1]?.headers).not.toHaveProperty('authorization');
});

it('notices are shown by notify-send as plain text, markup included', async () => {
  const folder = tempDir();
  const program = join(folder, 'notify-send');
  const said = join(folder, 'said');
  writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$@" > ${said}\n`);
  chmodSync(program, 0o755);
  const env = [['PATH', `${folder}:/usr/bin:/bin`]] as const;
  expect(await sendNotice({ kind: 'desktop' }, NOTICE, env, NEVER, systemClock)).toBe(null);
  expect(readFileSync(said, 'utf8').trimEnd().split('\n')).toEqual([
    '--app-name=Berth',
    '--',
    'shop--bot: agent.state',
    'shop--bot asks: "Überschreiben?" &lt;b&gt;&amp; $(touch x)&lt;/b&gt;',
  ]);
  writeFileSync(program, '#!/bin/sh\nexit 4\n');
  expect(await sendNotice({ kind: 'desktop' }, NOTICE, env, NEVER, systemClock)).toBe(
    'it ended with exit code 4',
  );
  expect(
    await sendNotice({ kind: 'desktop' }, NOTICE, [['PATH', join(folder, 'none')]], NEVER, systemClock),
  ).toBe('the program is not installed (ENOENT)');
});

it.each([
  [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`, 'the head of its answer is too large'],
  ['hello\r\n\r\n', 'its answer is no HTTP'],
  ['HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', 'it answers 101'],
  ['', 'it closed the connection without an answer'],
])('notices report what a webhook does instead of answering', async (answer, said) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const target = { kind: 'webhook', url: `http://127.0.0.1:${port}/`, secret: 'x' } as const;
  expect(await sendNotice(target, NOTICE, [], NEVER, systemClock)).toBe(said);
  server.close();
  await once(server, 'close');
  expect(await sendNotice(target, NOTICE, [], NEVER, systemClock)).toBe(
    'nothing listens there (ECONNREFUSED)',
  );
});

it('notices are given up after their time limit, also when garbage is collected meanwhile', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clock = virtualClock();
  const webhook = { kind: 'webhook', url: `http://127.0.0.1:${port}/`, secret: 'x' } as const;
  const exec = { kind: 'exec', command: 'sleep 600' } as const;
  const connected = once(server, 'connection');
  const sent = [webhook, exec].map((target) => sendNotice(target, NOTICE, [], NEVER, clock));
  await connected;
  collect();
  await clock.advance(LIMITS.timeoutMs);
  expect(await Promise.all(sent)).toEqual(['no answer within 10 s', 'no answer within 10 s']);
  server.close();
});
