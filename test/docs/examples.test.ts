// Every folder of docs/examples runs as its first lines say.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { eventually } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const EXAMPLES = join(ROOT, 'docs/examples');

/** A copy of the example, and the environment of its user, whose daemon runs. */
async function open(name: string) {
  // Another test's agent on the same port would count as the server of this one.
  const daemon = await daemonOf({ config: `[agents]\nports = [${ownPorts(2).join(', ')}]\n` });
  const cwd = join(folder(), name);
  cpSync(join(EXAMPLES, name), cwd, { recursive: true });
  const env = cleanEnv(folder(), {
    BERTH_STATE_DIR: daemon.stateDir,
    BERTH_CONFIG: daemon.configFile,
    BERTH_URL: `http://127.0.0.1:${daemon.port}`,
  });
  return { daemon, cwd, env };
}

async function outputOf(program: string, args: string[], cwd: string, env: Record<string, string>) {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [code] = await once(child, 'close');
  return { code, output };
}

it('every example has a test', () => {
  expect(readdirSync(EXAMPLES).sort()).toEqual(['agent', 'client', 'site']);
});

it('site: both services start, and the page is served', async () => {
  const { daemon, cwd, env } = await open('site');
  const up = await berth(['up'], { cwd, env });
  // On a busy machine it says on stderr what it still waits for.
  expect(up.code, up.stderr).toBe(0);
  const { body } = await daemon.request('GET', '/v1/services');
  expect(body.services.map((one: any) => [one.name, one.status])).toEqual([
    ['site--api', 'running'],
    ['site--site', 'running'],
  ]);
  expect(await (await fetch(body.services[1].url)).text()).toContain('It runs');
  expect((await berth(['down'], { cwd, env })).code).toBe(0);
});

it('agent: the script starts an agent, and its page is served', async () => {
  const { daemon, cwd, env } = await open('agent');
  const { code, output } = await outputOf('sh', ['spinup.sh', 'helper'], cwd, env);
  expect([code, JSON.parse(output).name]).toEqual([0, 'helper']);
  await eventually(
    async () => (await daemon.request('GET', '/v1/services/helper')).body.status === 'running',
  );
  expect((await fetch(JSON.parse(output).url)).status).toBe(200);
});

it('client: the program starts a service and prints its event', async () => {
  const { cwd, env } = await open('client');
  const packages = join(cwd, 'node_modules/@berth-dev');
  mkdirSync(packages, { recursive: true });
  cpSync(join(ROOT, 'dist/client-package'), join(packages, 'client'), { recursive: true });
  const { code, output } = await outputOf(process.execPath, ['watch.mjs'], cwd, env);
  expect([code, output]).toEqual([0, expect.stringMatching(/^service\.started http:\/\/localhost:\d+\n$/)]);
});
