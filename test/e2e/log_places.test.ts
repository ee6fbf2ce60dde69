// docs/reference.md "Logs of many services": places in logs, across rotations and the removal of a log.
import { expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../kit/daemon.ts';
import { eventually } from '../kit/eventually.ts';

const PATHS = ['/v1/services/web/logs/stream', '/v1/logs/stream?names=web', '/v1/logs/stream'] as const;

async function printed(daemon: Daemon, lines: readonly string[]): Promise<void> {
  const cmd = `${lines.map((line) => `echo ${line}`).join('; ')}; sleep 1000`;
  const made = await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd });
  expect(made.status).toBe(201);
  expect((await daemon.request('POST', '/v1/services/web/start')).status).toBe(200);
  const count = async () => (await daemon.request('GET', '/v1/services/web/logs')).body.lines.length;
  await eventually(async () => (await count()) === lines.length);
}

/** The lines of a stream until `last`, and the id of that. */
async function follow(daemon: Daemon, path: string, after: string | null, last: string) {
  const more = path.includes('/services/') ? 'lines=100' : 'since=1d';
  const query = after === null ? `${path.includes('?') ? '&' : '?'}${more}` : '';
  const headers = after === null ? {} : { 'Last-Event-ID': after };
  const response = await fetch(`http://127.0.0.1:${daemon.port}${path}${query}`, { headers });
  const decoder = new TextDecoder();
  let text = '';
  const isWhole = (): boolean => text.includes(last) && text.endsWith('\n\n');
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    if (isWhole()) break;
  }
  const id =
    text
      .match(/^id: (.+)$/gm)
      ?.at(-1)
      ?.slice('id: '.length) ?? '';
  return { lines: text.match(/line-[a-z0-9-]+/g) ?? [], id };
}

it.each([
  ['longer', ['line-1', 'line-2']],
  ['shorter', ['line-x']],
])(
  'a resumed stream has every line of a log that was made again, with a %s log before',
  async (_, before) => {
    const daemon = await startDaemon();
    const first = [...before, 'line-old'];
    const second = ['line-new-1', 'line-new-2', 'line-new-end'];
    await printed(daemon, first);
    const ids: string[] = [];
    for (const path of PATHS) {
      const { id, lines } = await follow(daemon, path, null, 'line-old');
      expect([path, lines]).toEqual([path, first]);
      ids.push(id);
    }
    expect((await daemon.request('DELETE', '/v1/services/web')).status).toBe(200);
    await printed(daemon, second);
    for (const [at, path] of PATHS.entries()) {
      const { lines } = await follow(daemon, path, ids[at] ?? '', 'line-new-end');
      expect([path, lines]).toEqual([path, second]);
    }
  },
);

it('pages of several logs reach across rotations', async () => {
  const daemon = await startDaemon({ config: 'port = 0\n[logs]\nmax_bytes = 65536\n' });
  const print =
    'print("x" x int(rand(3000)), "\\n"); print STDERR ("y" x int(rand(300)), "\\n") if rand(3) < 1';
  const cmd = `perl -e '$| = 1; srand(7); for (1..150) { ${print} }'`;
  const names = ['one', 'two', 'three'];
  for (const name of names) {
    await daemon.request('POST', '/v1/services', { name, port: null, kind: 'task', cmd });
    expect((await daemon.request('POST', `/v1/services/${name}/start`)).status).toBe(200);
  }
  const read = async (): Promise<number> => {
    let lines = 0;
    for (let before = ''; ; ) {
      const page = await daemon.request('GET', `/v1/logs?limit=40${before && `&before=${before}`}`);
      expect(page.status, JSON.stringify(page.body)).toBe(200);
      lines += page.body.lines.filter(({ text }: { text?: string }) => text !== undefined).length;
      before = page.body.before;
      if (!before) return lines;
    }
  };
  // At once, so that the threads that read open and close files between each other.
  const counts = await Promise.all(Array.from({ length: 6 }, read));
  expect(new Set(counts).size).toBe(1);
});
