// Several commands at once, on a real daemon: each does its work, and none blames a service for another.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detailsOf, whileRegistered } from '../../../src/cli/kit/removed_meanwhile.ts';
import { createClient } from '../../../src/client/create_client.ts';
import { nodeTransport } from '../../../src/client/node_transport.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

async function project(text: string) {
  const daemon = await daemonOf();
  const home = folder();
  const cwd = join(home, 'app');
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'berth.yaml'), text);
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  return { daemon, run: (line: string) => berth(line.split(' '), { cwd, env }) };
}

describe('simultaneous commands', () => {
  it('three calls of up each report why a service failed', async () => {
    const bad = `services:\n  bad: { cmd: "sleep 0.7; echo no database; exit 3", port: auto, ready: tcp }\n`;
    const { run } = await project(bad);
    for (const { code, stderr } of await Promise.all(['up', 'up', 'up'].map(run))) {
      expect(code).toBe(1);
      expect(stderr).toContain('bad ended with exit code 3 before it was ready');
      expect(stderr).toContain('no database');
    }
  });

  it('up registers a service once, so that no other command starts it without its ready-check', async () => {
    const { daemon, run } = await project(
      'services:\n  web: { cmd: "exec sleep 1000", port: auto, ready: tcp }\n',
    );
    expect((await run('up --no-start')).code).toBe(0);
    const { body } = await daemon.request('GET', '/v1/services/app--web');
    expect(body).toMatchObject({ ready: { tcp: true }, revision: 1 });
  });

  it('two calls of down stop and remove everything, and both succeed', async () => {
    const slow = `exec ${process.execPath} -e 'process.on("SIGTERM", () => setTimeout(process.exit, 400)); setInterval(() => {}, 1e6)'`;
    const row = (name: string, needs: string) =>
      `  ${name}: { cmd: ${JSON.stringify(slow)}, port: null, depends_on: [${needs}] }\n`;
    const { daemon, run } = await project(
      `services:\n${row('db', '')}${row('api', 'db')}${row('web', 'api')}`,
    );
    expect((await run('up')).code).toBe(0);
    for (const { code, stderr } of await Promise.all(['down', 'down'].map(run)))
      expect({ code, stderr }).toMatchObject({ code: 0 });
    expect((await daemon.request('GET', '/v1/services')).body.services).toEqual([]);
  });

  it('a start with join gets the result of the start under way, or of a running service', async () => {
    const { daemon } = await project('services: {}\n');
    const spec = { name: 'web', port: null, cmd: 'exec sleep 1000', ready: { exec: 'sleep 0.5' } };
    await daemon.request('POST', '/v1/services', spec);
    const start = (query: string) => daemon.request('POST', `/v1/services/web/start${query}`);
    const [first, second] = await Promise.all([start('?join=true'), start('?join=true')]);
    expect(first).toMatchObject({ status: 200, body: { status: 'running' } });
    expect(second.body).toEqual(first.body);
    expect((await start('?join=true')).body).toEqual(first.body);
    expect(await start('')).toMatchObject({ status: 409, body: { code: 'already_running' } });
  });

  it('leave out or report what another command removes meanwhile', async () => {
    const { daemon } = await project('services: {}\n');
    await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'true' });
    const client = createClient(nodeTransport, { url: `http://127.0.0.1:${daemon.port}` });
    expect((await detailsOf(client, ['gone', 'web'])).map(({ name }) => name)).toEqual(['web']);
    const lost = whileRegistered('gone', client.service('gone'));
    await expect(lost).rejects.toThrow('gone was removed by another command meanwhile');
  });
});
