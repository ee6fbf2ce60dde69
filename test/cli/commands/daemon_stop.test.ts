// Which daemon `berth daemon stop` and other commands find: docs/reference.md "State directory".
import { cpSync, rmSync } from 'node:fs';
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
