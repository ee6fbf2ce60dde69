// docs/reference.md "Damaged store", through the real daemon and the real command.
import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';

/** What `berth` prints, and its exit code. */
function outcome(args: string[], script = BIN): { code: number | null; stdout: string; stderr: string } {
  const {
    status: code,
    stdout,
    stderr,
  } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  return { code, stdout, stderr };
}

const CONFIG = 'port = 0\n[gateway]\nport = 0\n';

/** A state directory with the service `web`, whose daemon has ended. */
async function usedState(): Promise<string> {
  const daemon = await startDaemon();
  const spec = { name: 'web', port: 0, cmd: 'echo "it is $SECRET"; exec sleep 100', env: { SECRET: 'safe' } };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  await stopDaemon(daemon);
  return daemon.stateDir;
}

const start = (daemon: Daemon) => daemon.request('POST', '/v1/services/web/start');

/** Gives the table of services a page that is not there. lmdb has its root 50 bytes after its name. */
function misplaceServices(path: string): void {
  const bytes = readFileSync(path);
  const name = 'services\0';
  for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1))
    bytes.writeUInt32LE(0xffff_0000, at + 50);
  writeFileSync(path, bytes);
}

it.each([
  ['is missing', (path: string) => rmSync(path)],
  ['is damaged', (path: string) => writeFileSync(path, 'rubbish'.repeat(5_000))],
  // What lmdb finds out only as it reads: only the two meta pages are left.
  ['is damaged: MDB_', (path: string) => writeFileSync(path, readFileSync(path).fill(0, 8_192))],
  ['is damaged: MDB_', misplaceServices],
])(
  'a store that %s ends the start with exit code 1 and one line that says how to recover',
  async (why, harm) => {
    const state = await usedState();
    harm(join(state, 'store.mdb'));
    const config = join(newFolder(), 'config.toml');
    writeFileSync(config, CONFIG);
    const { code, stderr } = outcome(['daemon', '--state-dir', state, '--config', config]);
    // Where uWebSockets.js does not load, a line before says so; lmdb has its own line for a wrong page.
    const lines = stderr
      .trimEnd()
      .split('\n')
      .filter(
        (line) =>
          !/node:http serves|^internal error, index points to a 00 page|^page \d+ not found/.test(line),
      );
    expect([code, lines]).toEqual([1, [expect.stringContaining(why)]]);
    const command = /`berth (daemon --restore-store)`/.exec(stderr)?.[1];
    expect(command).toBeDefined();
  },
);

it('a copy that is damaged too ends the start with one line, and without it the store begins empty', async () => {
  const stateDir = await usedState();
  const [store, copy] = [join(stateDir, 'store.mdb'), join(stateDir, 'store.copy')];
  for (const path of [store, copy]) writeFileSync(path, 'x'.repeat(20_000));
  const config = join(newFolder(), 'config.toml');
  writeFileSync(config, CONFIG);
  for (const more of [[], ['--restore-store']]) {
    const { code, stderr } = outcome(['daemon', '--state-dir', stateDir, '--config', config, ...more]);
    expect([code, stderr.split(copy)]).toEqual([
      1,
      [expect.any(String), expect.stringMatching(/^: is damaged; [^\n]+\n$/)],
    ]);
  }
  rmSync(copy);
  const daemon = await startDaemon({ stateDir, args: ['--restore-store'] });
  expect((await daemon.request('GET', '/v1/services')).body).toEqual({ services: [] });
});

it('an environment whose key is lost is listed, does not start, and starts when the key is back', async () => {
  const stateDir = await usedState();
  const key = join(stateDir, 'env.key');
  expect(readFileSync(join(stateDir, 'store.mdb')).includes('safe')).toBe(false);
  renameSync(key, `${key}.away`);
  const daemon = await startDaemon({ stateDir });
  const listed = (await daemon.request('GET', '/v1/services/web')).body;
  expect(listed).toMatchObject({ name: 'web', envKeys: ['SECRET'] });
  expect(await start(daemon)).toMatchObject({
    status: 500,
    body: { code: 'key_unusable', hint: expect.stringContaining('env.key') },
  });
  renameSync(`${key}.away`, key);
  expect((await start(daemon)).status).toBe(200);
  const { lines } = (await daemon.request('GET', '/v1/services/web/logs')).body;
  expect(lines).toEqual(['it is safe']);
});

it('a damaged row is named by the log and by doctor, and the other rows are used', async () => {
  const stateDir = await usedState();
  const path = join(stateDir, 'store.mdb');
  const bytes = readFileSync(path);
  for (let at = bytes.indexOf('it is $SECRET'); at >= 0; at = bytes.indexOf('it is $SECRET', at + 1))
    bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  const daemon = await startDaemon({ stateDir });
  expect((await daemon.request('GET', '/v1/services')).body).toEqual({ services: [] });
  expect(daemon.stderr()).toContain('store: the row web of services is damaged and was left out');
  const { stdout } = outcome(['--state-dir', stateDir, '--config', daemon.configFile, 'doctor']);
  expect(stdout).toContain('damaged rows of the store were left out: services.web');
});

it('berth daemon start says how to recover when the daemon crashes on its mapped store', async () => {
  const script = join(newFolder(), 'berth.cjs');
  // The command line starts the daemon as itself.
  const fault = "if (!process.argv.includes('start')) process.kill(process.pid, 'SIGBUS');";
  writeFileSync(script, `${fault}\nrequire(${JSON.stringify(BIN)});`);
  const { code, stderr } = outcome(['--state-dir', join(newFolder(), 'state'), 'daemon', 'start'], script);
  expect(code).toBe(5);
  expect(stderr).toContain('ended with SIGBUS');
  expect(stderr).toContain('`berth daemon --restore-store`');
});
