// The command line finds the daemon wherever its configuration has it listen, and never prints an address
// that does not answer.
import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { localUrl } from '../../src/adapters/url_host.ts';
import { eventually } from '../kit/eventually.ts';
import { freePort } from '../kit/free_ports.ts';
import { berth, cleanEnv, daemonOf, folder } from './berth_process.ts';

it.each([
  ['127.0.0.1', 'http://127.0.0.1:80'],
  ['127.0.0.5', 'http://127.0.0.5:80'],
  ['::1', 'http://[::1]:80'],
  ['192.0.2.7', 'http://192.0.2.7:80'],
  ['0.0.0.0', 'http://127.0.0.1:80'],
  ['::', 'http://[::1]:80'],
  ['0:0:0:0:0:0:0:0', 'http://[::1]:80'],
])('a daemon on %s is reached at %s', (bind, url) => expect(localUrl(bind, 80)).toBe(url));

it.each([
  ['127.0.0.5', '127.0.0.5'],
  ['::1', '[::1]'],
  ['::', '[::1]'],
])('a daemon with bind = "%s" is found by every command', async (bind, host) => {
  const daemon = await daemonOf({ config: `bind = "${bind}"\n` });
  const url = `http://${host}:${daemon.port}`;
  expect(daemon.stdout()).toBe(`berth: listening on ${url}\n`);
  const cwd = folder();
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const run = (line: string) => berth(line.split(' '), { cwd, env });
  expect(await run('ps')).toMatchObject({ code: 0, stdout: '' });
  expect((await run('daemon status')).stdout).toContain(`  address    ${url}\n`);
  expect((await run('daemon start')).stdout).toContain(`already running at ${url} `);
  expect((await run('open --print')).stdout).toBe(`${url}/\n`);
  expect((await run('doctor')).stdout).toContain(`the daemon runs (pid ${daemon.pid}`);
  expect((await fetch(`${url}/schema/berth.json`)).status).toBe(200);
});

it('a started daemon is reported at the address where it listens', async () => {
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: folder(), BERTH_BIND: '127.0.0.5', BERTH_PORT: '0' });
  try {
    const started = await berth(['daemon', 'start', '--json'], { env });
    const { url } = JSON.parse(started.stdout);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.5:\d+$/);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  } finally {
    expect((await berth(['daemon', 'stop'], { env })).stdout).toContain('the daemon has ended');
  }
});

it('a started daemon reads the file that its link leads to now', async () => {
  const files = folder();
  const config = join(files, 'config.toml');
  const path = (name: string): string => join(files, name);
  for (const token of ['first', 'second'])
    writeFileSync(path(token), `[auth]\ntoken = "${token}"\n`, { mode: 0o600 });
  symlinkSync('first', config);
  const more = { BERTH_STATE_DIR: folder(), BERTH_CONFIG: config, BERTH_PORT: '0' };
  const env = cleanEnv(folder(), more);
  try {
    const { url, pid } = JSON.parse((await berth(['daemon', 'start', '--json'], { env })).stdout);
    const statusWith = async (token: string): Promise<number> =>
      (await fetch(`${url}/v1/services`, { headers: { Authorization: `Bearer ${token}` } })).status;
    expect(await statusWith('first')).toBe(200);
    symlinkSync('second', path('next'));
    renameSync(path('next'), config);
    process.kill(pid, 'SIGHUP');
    await eventually(async () => (await statusWith('second')) === 200);
  } finally {
    expect((await berth(['daemon', 'stop'], { env })).stdout).toContain('the daemon has ended');
  }
});

it('doctor checks the port at the address where the daemon would listen', async () => {
  const port = freePort();
  const taker = net.createServer();
  await new Promise<void>((resolve) => taker.listen(port, '127.0.0.5', resolve));
  const more = { BERTH_STATE_DIR: folder(), BERTH_BIND: '127.0.0.5', BERTH_PORT: `${port}` };
  const { stdout } = await berth(['doctor'], { env: cleanEnv(folder(), more) });
  taker.close();
  expect(stdout).toContain(`its port ${port} is taken by something else`);
});
