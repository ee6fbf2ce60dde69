// Commands for several services whose output goes into a pipe that is closed early, as by `head -1`.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BIN } from '../../kit/built_program.ts';
import { cleanEnv, daemonOf, folder } from '../berth_process.ts';

/** A daemon, and calls in the folder of a project file: what is printed on stderr, with the exit code. */
async function projectOf(text: string) {
  const daemon = await daemonOf();
  const cwd = folder();
  writeFileSync(join(cwd, 'berth.yaml'), text);
  const state = { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile };
  const env = cleanEnv(folder(), { ...state, NODE: process.execPath, BIN });
  const pipe = (command: string, reader: string): string => {
    const line = `{ "$NODE" "$BIN" ${command}; echo "code $?" >&2; } | ${reader}`;
    return spawnSync('/bin/sh', ['-c', line], { cwd, env, encoding: 'utf8' }).stderr;
  };
  return { daemon, pipe };
}

const chained = (name: string, needed: string): string =>
  `  ${name}: {cmd: "sleep 0.1; echo ready; exec sleep 600", port: null, ready: {log: ready}, depends_on: [${needed}]}\n`;
const CHAIN = `services:\n${chained('s0', '')}${chained('s1', 's0')}${chained('s2', 's1')}${chained('s3', 's2')}`;

it.each(['head -1', 'grep -q s0', 'true'])(
  'up and down are done to their end before `%s`',
  async (reader) => {
    const { daemon, pipe } = await projectOf(CHAIN);
    const states = async (): Promise<string[]> => {
      const { body } = await daemon.request('GET', '/v1/services');
      return body.services.map(({ status }: { status: string }) => status);
    };
    expect(pipe('up', reader)).toContain('code 0');
    expect(await states()).toEqual(['running', 'running', 'running', 'running']);
    expect(pipe('down', reader)).toContain('code 0');
    expect(await states()).toEqual([]);
  },
);

it('the exit code of up is that of the services, whoever reads its output', async () => {
  const { pipe } = await projectOf('services:\n  web: {cmd: "exit 3", port: null, ready: {log: never}}\n');
  for (let times = 0; times < 3; times += 1) expect(pipe('up', 'true')).toMatch(/code [1-9]/);
});

it('the exit code of start is that of the services, whoever reads its output', async () => {
  const bad = '  bad: {cmd: "sleep 0.3; exit 3", port: null, ready: {log: never}}\n';
  const { daemon, pipe } = await projectOf(`services:\n  good: {cmd: "exec sleep 600", port: null}\n${bad}`);
  expect(pipe('up --no-start', 'cat')).toContain('code 0');
  for (let times = 0; times < 3; times += 1) {
    expect(pipe('start good bad', 'true')).toMatch(/code [1-9]/);
    expect(pipe('stop good bad', 'head -1')).toContain('code 0');
    const { body } = await daemon.request('GET', '/v1/services');
    expect(body.services.map(({ status }: { status: string }) => status)).not.toContain('running');
  }
});
