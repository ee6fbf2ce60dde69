// Project files that are pipes, and other things in the place of one: docs/reference.md "Stacks".
import { execFile, execFileSync } from 'node:child_process';
import { chownSync, closeSync, constants, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { BIN } from '../../kit/built_program.ts';
import { eventually } from '../../kit/eventually.ts';
import { canBecomeOthers, OTHER_UID } from '../../kit/other_user.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

const FILE = 'services:\n  web: { cmd: run, port: null, env_file: web.env }\n';

/** The end of a FIFO that is written to, once somebody has opened the other one. */
const writingEnd = (fifo: string): Promise<number> =>
  eventually(() => {
    try {
      return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return null;
    }
  });

it('a command waits for the writer of a FIFO, and a signal ends it meanwhile', async () => {
  const home = folder();
  for (const name of ['berth.yaml', 'web.env']) execFileSync('mkfifo', [join(home, name)]);
  const run = () => {
    let kill: (signal: NodeJS.Signals) => void = () => {};
    const ended = berth(['config'], { cwd: home, onStart: (end) => (kill = end) });
    return { ended, kill: (signal: NodeJS.Signals) => kill(signal) };
  };
  const stopped = run();
  closeSync(await writingEnd(join(home, 'berth.yaml')));
  stopped.kill('SIGTERM');
  expect((await stopped.ended).code).toBe(143);

  const read = run();
  for (const [name, text] of Object.entries({ 'berth.yaml': FILE, 'web.env': 'KEY=from-a-pipe\n' })) {
    const end = await writingEnd(join(home, name));
    writeFileSync(end, text);
    closeSync(end);
  }
  expect(await read.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('KEY: from-a-pipe') });
});

it('a FIFO that is the .env and the env_file of several services is read once', async () => {
  const home = folder();
  execFileSync('mkfifo', [join(home, 'fifo')]);
  symlinkSync('fifo', join(home, '.env'));
  const files = '  a: { cmd: run, env_file: fifo }\n  b: { cmd: "run ${KEY}", env_file: [.env, fifo] }\n';
  writeFileSync(join(home, 'berth.yaml'), `services:\n${files}`);
  const ran = berth(['config'], { cwd: home });
  const end = await writingEnd(join(home, 'fifo'));
  writeFileSync(end, 'KEY=of-both\n');
  closeSync(end);
  const { code, stdout } = await ran;
  expect(code).toBe(0);
  expect(stdout.match(/KEY: of-both/g)).toHaveLength(2);
  expect(stdout).toContain('cmd: run of-both');
});

it.each(['berth.yaml', 'Procfile'])('a %s that is a link is that of the folder of the link', async (name) => {
  const home = folder();
  const text = name === 'Procfile' ? 'web: run\n' : 'services:\n  web: { cmd: run }\n';
  writeFileSync(join(home, 'shared'), text);
  const env = cleanEnv(folder());
  for (const project of ['one', 'two']) {
    mkdirSync(join(home, project));
    symlinkSync('../shared', join(home, project, name));
    const { stdout } = await berth(['config', '--json'], { cwd: join(home, project), env });
    const cwd = join(home, project);
    expect(JSON.parse(stdout)).toMatchObject({ file: join(cwd, name), services: { web: { cwd } } });
  }
});

it('every command takes a berth.yaml that is a link for that of the folder of the link', async () => {
  const home = folder();
  const daemon = await daemonOf();
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const file = join(home, 'one', 'berth.yaml');
  const run = (project: string, ...args: string[]) => berth(args, { cwd: join(home, project), env });
  const statusOf = async (project: string): Promise<string> =>
    (await daemon.request('GET', `/v1/services/${project}--web`)).body.status;
  for (const project of ['one', 'two']) {
    mkdirSync(join(home, project));
    if (project === 'one') writeFileSync(file, 'services:\n  web: { cmd: exec sleep 1000, port: null }\n');
    else symlinkSync(file, join(home, project, 'berth.yaml'));
    expect(await run(project, 'up')).toMatchObject({ code: 0 });
  }
  expect(JSON.parse((await run('two', 'ps', '--json')).stdout)).toMatchObject([{ name: 'two--web' }]);
  expect(await run('two', 'stop', 'web')).toMatchObject({ code: 0 });
  expect([await statusOf('one'), await statusOf('two')]).toEqual(['running', 'stopped']);
  expect(await run('two', 'rm', 'web')).toMatchObject({ code: 0 });
  expect(await statusOf('one')).toBe('running');
  expect(await run('two', 'down')).toMatchObject({ code: 0 });
  expect(await statusOf('one')).toBe('running');
});

it('a name that is too long with the prefix of its stack is refused before anything is registered', async () => {
  const home = folder();
  const long = 'a'.repeat(60);
  const file = `name: shop\nservices:\n  web: { cmd: run, depends_on: [${long}] }\n  ${long}: { cmd: run }\n`;
  writeFileSync(join(home, 'berth.yaml'), file);
  const counts = 'the prefix shop-- counts, so at most 57 characters remain, and it has 60';
  const ran = await berth(['up', '--dry-run'], { cwd: home });
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(ran.stderr).toContain(`services.${long}: the name is too long: ${counts}\n`);
});

it.runIf(canBecomeOthers)('a file above of another user is used only if it is named', async () => {
  const home = folder();
  const file = join(home, 'berth.yaml');
  writeFileSync(file, 'services:\n  evil: { cmd: id, port: null }\n');
  chownSync(file, OTHER_UID, OTHER_UID);
  const mine = join(home, 'mine');
  mkdirSync(mine);
  const up = (...more: string[]) => berth(['up', '--dry-run', ...more], { cwd: mine });
  const refused = await up();
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(`${file} belongs to another user`);
  expect(await up('-f', file)).toMatchObject({ code: 0, stdout: 'evil would be registered\n' });
  writeFileSync(join(mine, 'Procfile'), 'own: sleep 1000\n');
  expect(await up()).toMatchObject({ code: 0, stdout: 'own would be registered\n' });
});

it('a pipe that the shell names is read as a file in this folder', async () => {
  const home = folder();
  writeFileSync(join(home, 'web.env'), 'KEY=of-the-folder\n');
  const command = `printf '${FILE}' | "$0" "$1" config -f /dev/stdin; "$0" "$1" config -f <(printf '${FILE}')`;
  const options = { cwd: home, env: cleanEnv(home) };
  const { stdout } = await promisify(execFile)('bash', ['-c', command, process.execPath, BIN], options);
  expect(stdout.match(/KEY: of-the-folder/g)).toHaveLength(2);
  expect(stdout.match(/cwd: (.*)/g)).toEqual([`cwd: ${home}`, `cwd: ${home}`]);
});

it('something else in the place of the file is named', async () => {
  const home = folder();
  mkdirSync(join(home, 'berth.yaml'));
  const ran = await berth(['config'], { cwd: home });
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(ran.stderr).toContain('berth.yaml:1:1: cannot be read: it is a folder, and not a file\n');
  mkdirSync(join(home, 'web/.env'), { recursive: true });
  writeFileSync(join(home, 'web/berth.yaml'), 'services:\n  web: { cmd: run }\n');
  const other = await berth(['config'], { cwd: join(home, 'web') });
  expect(other).toMatchObject({ code: 2, stdout: '' });
  expect(other.stderr).toContain('/web/.env:1:1: cannot be read: it is a folder, and not a file\n');
});

it("a fault in another tool's file has no position, as the file made of it has other lines", async () => {
  const home = folder();
  const text = 'processes: { a: { command: run, working_dir: none } }\n';
  writeFileSync(join(home, 'process-compose.yaml'), text);
  const { code, stderr } = await berth(['config'], { cwd: home });
  expect(code).toBe(2);
  const last = stderr.trimEnd().split('\n').at(-1);
  expect(last).toBe(`berth: process-compose.yaml: services.a.cwd: there is no folder ${home}/none`);
});
