// What fails outside of the program is one line, and no stack: docs/reference.md "Exit codes".
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { berth, cleanEnv, folder } from './berth_process.ts';

it.each(['null', '7', '{}', '[]', '{"services":{"a":1}}'])(
  'answers of something else than berth are one line: %s',
  async (answer) => {
    const server = createServer((_, response) => response.end(answer)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await berth(['--url', `http://127.0.0.1:${port}`, 'ls']);
    server.close();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^berth: .+\n(?:.+\n)?$/);
    expect(stderr).not.toMatch(/^ {4}at /m);
  },
);

it('a folder that has been removed is named', async () => {
  const home = folder();
  const script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" "$1" config';
  const failed = new Promise<string>((resolve) =>
    execFile('sh', ['-c', script, process.execPath, BIN], { cwd: home, env: cleanEnv(home) }, (_, __, said) =>
      resolve(said),
    ),
  );
  expect(await failed).toContain('berth: the current folder has been removed\n');
});
