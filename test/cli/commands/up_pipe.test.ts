// `berth up` and `berth down` whose output goes into a pipe that is closed early, as by `head -1`.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BIN } from '../../kit/built_program.ts';
import { cleanEnv, daemonOf, folder } from '../berth_process.ts';

it.each(['head -1', 'grep -q s0', 'true'])(
  'up and down are done to their end before `%s`',
  async (reader) => {
    const daemon = await daemonOf();
    const cwd = folder();
    const services = [0, 1, 2, 3].map(
      (at) =>
        `  s${at}: {cmd: "sleep 0.1; echo ready; exec sleep 600", port: null, ready: {log: ready}, depends_on: [${at === 0 ? '' : `s${at - 1}`}]}\n`,
    );
    writeFileSync(join(cwd, 'berth.yaml'), `services:\n${services.join('')}`);
    const more = {
      BERTH_STATE_DIR: daemon.stateDir,
      BERTH_CONFIG: daemon.configFile,
      NODE: process.execPath,
      BIN,
    };
    const env = cleanEnv(folder(), more);
    const run = (command: string) =>
      spawnSync('/bin/sh', ['-c', `{ "$NODE" "$BIN" ${command}; echo "code $?" >&2; } | ${reader}`], {
        ...{ cwd, env, encoding: 'utf8' },
      });
    const states = async (): Promise<string[]> => {
      const { body } = await daemon.request('GET', '/v1/services');
      return body.services.map(({ status }: { status: string }) => status);
    };
    expect(run('up').stderr).toContain('code 0');
    expect(await states()).toEqual(['running', 'running', 'running', 'running']);
    expect(run('down').stderr).toContain('code 0');
    expect(await states()).toEqual([]);
  },
);

it('the exit code of up is that of the services, whoever reads its output', async () => {
  const daemon = await daemonOf();
  const cwd = folder();
  writeFileSync(
    join(cwd, 'berth.yaml'),
    'services:\n  web: {cmd: "exit 3", port: null, ready: {log: never}}\n',
  );
  const more = {
    BERTH_STATE_DIR: daemon.stateDir,
    BERTH_CONFIG: daemon.configFile,
    NODE: process.execPath,
    BIN,
  };
  const env = cleanEnv(folder(), more);
  for (let times = 0; times < 3; times += 1) {
    const command = '{ "$NODE" "$BIN" up; echo "code $?" >&2; } | true';
    const { stderr } = spawnSync('/bin/sh', ['-c', command], { cwd, env, encoding: 'utf8' });
    expect(stderr).toMatch(/code [1-9]/);
  }
});
