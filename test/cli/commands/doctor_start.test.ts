// `berth doctor` names what keeps a daemon from starting, as the daemon itself does.
import { spawnSync } from 'node:child_process';
import { chmodSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statePaths } from '../../../src/settings/state_paths.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { hostPid, stopDaemon } from '../../kit/daemon.ts';
import { freePort } from '../../kit/free_ports.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

interface Place {
  stateDir: string;
  config: string;
}

/** The state directory of a daemon that has ended, with a service in its store. */
async function endedDaemon(): Promise<Place> {
  const daemon = await daemonOf();
  await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'sleep 60' });
  await stopDaemon(daemon);
  return { stateDir: daemon.stateDir, config: daemon.configFile };
}

const env = ({ stateDir, config }: Place) =>
  cleanEnv(folder(), { BERTH_STATE_DIR: stateDir, BERTH_CONFIG: config });

/** What doctor finds wrong, and the last line of a daemon that is started in the same place. */
async function faultsOf(place: Place): Promise<{ wrong: string[]; code: number | null; said: string }> {
  const doctor = await berth(['doctor', '--json'], { env: env(place) });
  const found: { state: string; about: string }[] = JSON.parse(doctor.stdout);
  const started = await berth(['daemon'], { env: env(place) });
  return {
    wrong: found.filter(({ state }) => state === 'wrong').map(({ about }) => about),
    code: doctor.code,
    said:
      started.stderr
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^berth: /, '') ?? '',
  };
}

describe('what keeps a daemon from starting', () => {
  const inState =
    (name: keyof ReturnType<typeof statePaths>, spoil: (path: string) => void) => (place: Place) =>
      spoil(statePaths(place.stateDir)[name]);

  it.each<[what: string, spoil: (place: Place) => void]>([
    ['a missing store', inState('store', (path) => renameSync(path, `${path}.away`))],
    ['a truncated store', inState('store', (path) => truncateSync(path, 20_000))],
    ['a store that is something else', inState('store', (path) => writeFileSync(path, 'x'.repeat(20_000)))],
    ['a cloud token that others can read', inState('cloudToken', (path) => chmodSync(path, 0o644))],
    ['an empty cloud token', inState('cloudToken', (path) => writeFileSync(path, ''))],
    ['a state directory that others can write to', ({ stateDir }) => chmodSync(stateDir, 0o777)],
    [
      'a missing certificate',
      ({ config }) =>
        writeFileSync(
          config,
          'port = 0\n[cloud]\nbind = "127.0.0.1"\nport = 0\ntls_cert = "/nope"\ntls_key = "/nope"',
        ),
    ],
  ])('%s', async (_what, spoil) => {
    const place = await endedDaemon();
    spoil(place);
    const { wrong, code, said } = await faultsOf(place);
    expect(wrong).toEqual([said]);
    expect(code).toBe(1);
  });

  // Modes do not bind root, so the folder must be immutable.
  it.for(['the state directory', 'the folder of the process host'])(
    '%s, immutable',
    async (what, { skip }) => {
      const place = await endedDaemon();
      const host = statePaths(place.stateDir).host;
      const folder = what === 'the state directory' ? place.stateDir : host;
      skip(spawnSync('chattr', ['+i', folder]).status !== 0, 'no file can be made immutable here');
      try {
        const { wrong, code, said } = await faultsOf(place);
        expect([wrong, code]).toEqual([
          [`${folder}: cannot be written to: EPERM: operation not permitted`],
          1,
        ]);
        expect(said).toBe(wrong[0]);
        const started = await berth(['daemon', 'start'], { env: env(place) });
        expect(started.code).not.toBe(0);
        expect(started.stderr).toContain(said);
      } finally {
        spawnSync('chattr', ['-i', folder]);
      }
    },
  );

  it.each([
    ['port', '::1', (port: number) => `port = ${port}`],
    ['cloud.port', '127.0.0.1', (port: number) => `port = 0\n[cloud]\nbind = "127.0.0.1"\nport = ${port}`],
  ])('a taken %s', async (name, address, configOf) => {
    const port = freePort();
    const taker = net.createServer();
    await new Promise<void>((resolve) => taker.listen(port, address, resolve));
    afterThisTest(() => void taker.close());
    const dir = folder();
    const config = join(dir, 'config.toml');
    writeFileSync(config, `${configOf(port)}\n`);
    const { wrong, said } = await faultsOf({ stateDir: join(dir, 'state'), config });
    const shown = address === '::1' ? `[::1]:${port}` : `${address}:${port}`;
    expect(wrong).toEqual([
      `no daemon is running, and its port ${port} is taken by something else: ${name} at ${shown}`,
    ]);
    expect(said).toContain(`port ${port} is taken`);
  });
});

describe('a running daemon', () => {
  it('whose store was removed is wrong', async () => {
    const daemon = await daemonOf();
    await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'sleep 60' });
    const { store } = statePaths(daemon.stateDir);
    renameSync(store, `${store}.away`);
    const ran = await berth(['doctor'], {
      env: env({ stateDir: daemon.stateDir, config: daemon.configFile }),
    });
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/✗ \S+store\.mdb: is missing, .*\n {4}Restart the daemon/);
  });

  it('whose process host is suspended is wrong', async () => {
    const daemon = await daemonOf();
    // A service needs the host, which may start after the daemon.
    await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd: 'sleep 60' });
    await daemon.request('POST', '/v1/services/web/start');
    const host = hostPid(daemon.stateDir);
    process.kill(host, 'SIGSTOP');
    afterThisTest(() => void process.kill(host, 'SIGCONT'));
    const ran = await berth(['doctor'], {
      env: env({ stateDir: daemon.stateDir, config: daemon.configFile }),
    });
    expect(ran.code).toBe(1);
    expect(ran.stdout).toContain('✗ the process host does not answer: services keep running');
  });

  it('that has not read a changed port is doubtful', async () => {
    const daemon = await daemonOf();
    const port = freePort();
    writeFileSync(daemon.configFile, `port = ${port}\n`);
    const ran = await berth(['doctor'], {
      env: env({ stateDir: daemon.stateDir, config: daemon.configFile }),
    });
    expect(ran.stdout).toContain(
      `! the daemon uses port ${daemon.port}, and the configuration has port = ${port}`,
    );
  });
});

it.each([
  ['of the environment', 'wrong-token', 'BERTH_AUTH_TOKEN, which overrides auth.token, is not its token'],
  ['of the configuration', '', 'If its token was changed, `kill -HUP'],
])('a wrong token %s is found where it comes from', async (_where, given, fix) => {
  const daemon = await daemonOf({ config: '[auth]\ntoken = "the-right-token"\n' });
  if (given === '') writeFileSync(daemon.configFile, '[auth]\ntoken = "another-token"\n', { mode: 0o600 });
  const more = { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile, BERTH_AUTH_TOKEN: given };
  const { code, stdout } = await berth(['doctor'], { env: cleanEnv(folder(), more) });
  expect([code, stdout]).toEqual([
    1,
    expect.stringContaining(`does not know the token: the token was not sent\n    ${fix}`),
  ]);
});
