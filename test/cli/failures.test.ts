// What fails outside of the program is one line, and no stack: docs/reference.md "Exit codes".
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Asked, json, leastAnswer, serve } from '../kit/recording_server.ts';
import { berth, cleanEnv, folder } from './berth_process.ts';

it.each(['null', '7', '{}', '[]', '{"services":{"a":1}}'])(
  'responses of another server than Berth are reported in one line: %s',
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

it.each([
  [['logs', 'web'], 1],
  [['logs', 'web', '-f'], 5],
  [['logs', 'web', '-f', '--raw'], 5],
  [['events'], 5],
])('`berth %j` ends with the error of a daemon that fails each time', async (args, times) => {
  const failure = { code: 'internal', message: 'something went wrong in the daemon', hint: 'See its log.' };
  const isStream = ({ path }: Asked): boolean => /stream|events/.test(path);
  const { asked, url } = await serve((one, response) =>
    isStream(one) ? json(response, 500, failure) : json(response, 200, leastAnswer(one)),
  );
  const { code, stderr } = await berth(['--url', url, ...args]);
  expect([code, asked.filter(isStream).length]).toEqual([1, times]);
  expect(stderr).toContain(`berth: ${failure.message}\n`);
});

it('berth logs waits for a daemon that is starting', async () => {
  const { asked, url } = await serve((one, response) => {
    if (!one.path.includes('stream')) json(response, 200, leastAnswer(one));
    else if (asked.length < 3) json(response, 503, { code: 'daemon_busy', message: 'starting', hint: '' });
    else {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.end('event: end\ndata: {}\n\n');
    }
  });
  const { code, stderr } = await berth(['--url', url, 'logs', 'web', '-A']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('The daemon is back.')]);
});

it('an output that cannot be written is reported', async () => {
  const home = folder();
  const failed = new Promise<string>((resolve) =>
    execFile(
      'sh',
      ['-c', '"$0" "$1" help >/dev/full', process.execPath, BIN],
      { env: cleanEnv(home) },
      (_, __, said) => resolve(said),
    ),
  );
  expect(await failed).toMatch(/^berth: the output cannot be written: .*ENOSPC.*\n$/);
});

it('the version is printed all the same when the configuration is invalid, which is reported', async () => {
  const home = folder();
  const config = join(home, 'config.toml');
  writeFileSync(config, 'port = "many"\n');
  const { code, stdout, stderr } = await berth(['-v'], { env: cleanEnv(home, { BERTH_CONFIG: config }) });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^berth \d\S* \(node \S+\)\n$/);
  expect(stderr).toContain(config);
});

it('Ctrl-C ends a command that reads a kubeconfig from stdin', async () => {
  const child = spawn(process.execPath, [BIN, 'k8s', 'add', '--kubeconfig', '-'], {
    env: cleanEnv(folder()),
  });
  const ended = once(child, 'exit');
  // More than a pipe holds: it is written once the command reads.
  await new Promise((written) => child.stdin.write(`#${'x'.repeat(2_000_000)}`, written));
  child.kill('SIGINT');
  expect(await ended).toEqual([130, null]);
});

it('a working directory that has been removed is reported', async () => {
  const home = folder();
  const script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" "$1" config';
  const failed = new Promise<string>((resolve) =>
    execFile('sh', ['-c', script, process.execPath, BIN], { cwd: home, env: cleanEnv(home) }, (_, __, said) =>
      resolve(said),
    ),
  );
  expect(await failed).toContain('berth: the current folder has been removed\n');
});
