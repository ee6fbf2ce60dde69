// Which daemon `berth daemon stop` and other commands find: docs/reference.md "State directory".
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { EXIT_CODE } from '../../../src/cli/kit/exit_codes.ts';
import { statePaths } from '../../../src/settings/state_paths.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

const envOf = (stateDir: string) => cleanEnv(folder(), { BERTH_STATE_DIR: stateDir });

it('the daemon of another state directory is not found through a copy of its file', async () => {
  const daemon = await daemonOf();
  const copy = folder();
  cpSync(statePaths(daemon.stateDir).addressFile, statePaths(copy).addressFile);
  const env = envOf(copy);
  expect(await berth(['daemon', 'stop'], { env })).toMatchObject({
    code: 0,
    stdout: 'no daemon was running\n',
  });
  expect((await berth(['daemon', 'status'], { env })).code).toBe(EXIT_CODE.noDaemon);
  expect((await daemon.request('GET', '/v1/services')).status).toBe(200);
});

it('a daemon whose file was deleted is stopped all the same', async () => {
  const daemon = await daemonOf();
  const { addressFile } = statePaths(daemon.stateDir);
  rmSync(addressFile);
  const stopped = await berth(['daemon', 'stop'], { env: envOf(daemon.stateDir) });
  expect(stopped).toMatchObject({ code: 0, stdout: `the daemon has ended (pid ${daemon.pid})\n` });
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
});

it.each([
  ['', () => {}],
  [' and made anew', mkdirSync],
])('a daemon whose state directory was removed%s is named by status, and stopped', async (_, make) => {
  const daemon = await daemonOf();
  const { stateDir, pid } = daemon;
  const other = await daemonOf();
  rmSync(stateDir, { recursive: true });
  make(stateDir, { mode: 0o700 });
  const env = envOf(stateDir);
  expect(await berth(['daemon', 'status'], { env })).toMatchObject({
    code: EXIT_CODE.noDaemon,
    stderr: expect.stringContaining(`a daemon runs (pid ${pid}), but there is no ${stateDir}/daemon.json`),
  });
  const stopped = await berth(['daemon', 'stop'], { env });
  expect(stopped).toMatchObject({ code: 0, stdout: `the daemon has ended (pid ${pid})\n` });
  expect((await berth(['daemon', 'stop'], { env })).stdout).toBe('no daemon was running\n');
  expect((await other.request('GET', '/v1/services')).status).toBe(200);
});

it.each([
  ['stop', 'an option', (url: string) => [['--url', url], {}] as const],
  ['stop', 'a variable', (url: string) => [[], { BERTH_URL: url }] as const],
  ['restart', 'an option', (url: string) => [['--url', url], {}] as const],
])('berth daemon %s ends no daemon if %s names another', async (verb, _, given) => {
  const [own, other] = [await daemonOf(), await daemonOf()];
  const env = envOf(own.stateDir);
  const [options, variables] = given(`http://localhost:${other.port}`);
  const refused = await berth(['daemon', verb, ...options], { env: { ...env, ...variables } });
  expect(refused.code).toBe(EXIT_CODE.usage);
  expect(refused.stderr).toContain(`is not the daemon of ${own.stateDir}`);
  for (const one of [own, other]) expect((await one.request('GET', '/v1/services')).status).toBe(200);
  const same = await berth(['daemon', 'stop', '--url', `127.0.0.1:${own.port}`], { env });
  expect(same.stdout).toBe(`the daemon has ended (pid ${own.pid})\n`);
});
