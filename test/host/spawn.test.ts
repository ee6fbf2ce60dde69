import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stateDirId } from '../../src/settings/state_paths.ts';
import { connectDaemon, eventually, hasOnlyItsOwn, newState, useHost } from '../kit/process_host.ts';

useHost();

test('a process has its own session and group, environment, directory and umask', async () => {
  const daemon = await connectDaemon(newState());
  const started = await daemon.spawn('web', 'pwd; umask; env | sort; exec sleep 60', {
    cwd: '/tmp',
    umask: 0o027,
    env: [['FOO', 'bär']],
  });
  const stat = readFileSync(`/proc/${started.pid}/stat`, 'latin1').split(' ');
  expect(stat.slice(4, 6).map(Number)).toEqual([started.pid, started.pid]);
  expect(started.startTicks).toBe(Number(stat[21]));
  expect(started.rssMB).toBeGreaterThanOrEqual(1);
  await eventually(() => readFileSync(`/proc/${started.pid}/comm`, 'latin1') === 'sleep\n');
  await hasOnlyItsOwn(started.pid);
  expect(await eventually(() => (daemon.tail('web').length >= 9 ? daemon.tail('web') : null))).toEqual([
    '/tmp',
    '0027',
    `BERTH_RUN=${started.run}`,
    'BERTH_SERVICE=web',
    `BERTH_STATE_ID=${stateDirId(daemon.stateDir)}`,
    `BERTH_TEST=${daemon.stateDir}`,
    'FOO=bär',
    `PATH=${process.env['PATH']}`,
    'PWD=/tmp',
  ]);
});

test('a process ignores and blocks no signal, whatever the daemon or the host does', async () => {
  const daemon = await connectDaemon(newState());
  const started = await Promise.all([
    daemon.spawn('web', 'exec sleep 60'),
    daemon.spawn('agent', 'exec sleep 60', { pty: { cols: 80, rows: 24 } }),
  ]);
  for (const { pid } of started) {
    await eventually(() => readFileSync(`/proc/${pid}/comm`, 'latin1') === 'sleep\n');
    expect(readFileSync(`/proc/${pid}/status`, 'latin1')).toMatch(/^SigBlk:\t0+\nSigIgn:\t0+$/m);
  }
});

test('a failed start gives the reason, and leaves nothing behind', async () => {
  const daemon = await connectDaemon(newState());
  const file = join(daemon.stateDir, 'file');
  writeFileSync(file, '');
  await expect(daemon.spawn('a', 'true', { cwd: '/no/such/place' })).rejects.toMatchObject({
    code: 'start_failed',
    message: 'a could not be started: its working directory /no/such/place does not exist',
  });
  await expect(daemon.spawn('a', 'true', { cwd: file })).rejects.toMatchObject({
    code: 'start_failed',
    message: `a could not be started: its working directory ${file} is no directory`,
  });
  const loop = join(daemon.stateDir, 'loop');
  symlinkSync(loop, loop);
  for (const [cwd, why] of [
    [join(file, 'x'), 'does not exist'],
    [loop, 'cannot be reached: ELOOP'],
    [join(daemon.stateDir, 'x'.repeat(300)), 'cannot be reached: ENAMETOOLONG'],
  ] as const)
    await expect(daemon.spawn('a', 'true', { cwd })).rejects.toMatchObject({
      code: 'start_failed',
      message: `a could not be started: its working directory ${cwd} ${why}`,
    });
  await expect(daemon.spawn('a', 'true', { env: [['BIG', 'x'.repeat(200_000)]] })).rejects.toMatchObject({
    code: 'start_failed',
    message: 'a could not be started: spawn E2BIG',
  });
  expect(await daemon.host.ask('runs', {})).toEqual({ runs: [] });
  expect(readdirSync(join(daemon.stateDir, 'runs'))).toEqual([]);
});

test('exit codes, signals and all output are reported, and kept until they are acknowledged', async () => {
  const daemon = await connectDaemon(newState());
  const [zero, three, killed, missing] = await Promise.all([
    daemon.spawn('zero', 'echo out; echo err >&2; printf last'),
    daemon.spawn('three', 'exit 3'),
    daemon.spawn('killed', 'kill -USR1 $$'),
    daemon.spawn('missing', 'exec /no/such/program'),
  ]);
  expect(await daemon.ended(zero)).toMatchObject({
    service: 'zero',
    exitCode: 0,
    signal: null,
    exitUnknown: false,
    cause: 'exit',
  });
  expect(await daemon.ended(three)).toMatchObject({ exitCode: 3, signal: null });
  expect(await daemon.ended(killed)).toMatchObject({ exitCode: null, signal: 'SIGUSR1', exitUnknown: false });
  expect(await daemon.ended(missing)).toMatchObject({ exitCode: 127 });
  expect(daemon.whole('zero').toString().split('').sort()).toEqual('out\nerr\nlast'.split('').sort());
  expect(daemon.tail('missing')[0]).toContain('not found');
  const rows = () =>
    daemon.host.ask('runs', {}).then(({ runs }) => runs.map((row) => [row.service, row.end?.exitCode]));
  expect((await rows()).sort()).toEqual([
    ['killed', null],
    ['missing', 127],
    ['three', 3],
    ['zero', 0],
  ]);
  // Reported repeatedly until somebody acknowledges it.
  const times = () => daemon.ends.filter((end) => end.run === three.run).length;
  await eventually(() => times() > 1);
  for (const { service, run } of [zero, three, killed, missing])
    daemon.host.tell('acknowledge', { service, run });
  expect(await rows()).toEqual([]);
});

test('the FIFOs of a run are reused, but not while a process still writes to them', async () => {
  const daemon = await connectDaemon(newState());
  const runs = join(daemon.stateDir, 'runs');
  const inodesOf = ({ run }: { run: string }) =>
    ['out', 'err'].map((kind) => statSync(join(runs, `${run}.${kind}`)).ino).sort();
  const kill = async (run: { run: string; pid: number }) => {
    process.kill(run.pid, 'SIGKILL');
    await daemon.ended(run);
  };
  const gate = join(daemon.stateDir, 'gate');
  const first = await daemon.spawn('first', 'exec sleep 60');
  const inodes = inodesOf(first);
  await kill(first);
  const second = await daemon.spawn(
    'second',
    `(while [ ! -e ${gate} ]; do sleep 0.02; done; echo late) & echo early; exec sleep 60`,
  );
  expect(inodesOf(second)).toEqual(inodes);
  await eventually(() => daemon.tail('second').length > 0);
  await kill(second);
  // A process left behind still has them open, so nobody else gets them.
  expect(readdirSync(runs)).toEqual([]);
  const third = await daemon.spawn('third', 'echo third; exec sleep 60');
  expect(inodesOf(third).filter((inode) => inodes.includes(inode))).toEqual([]);
  writeFileSync(gate, '');
  await eventually(() => daemon.tail('second').length > 1 && daemon.tail('third').length > 0);
  expect([daemon.tail('second'), daemon.tail('third')]).toEqual([['early', 'late'], ['third']]);
  const kept = inodesOf(third);
  await kill(third);
  const fourth = await daemon.spawn('fourth', 'echo fourth; exec sleep 60');
  expect(inodesOf(fourth)).toEqual(kept);
  expect(readdirSync(runs)).toHaveLength(2);
  await eventually(() => daemon.tail('fourth').length > 0);
  expect([daemon.tail('third'), daemon.tail('fourth')]).toEqual([['third'], ['fourth']]);
});

test('a FIFO is not reused while a process still reads it', async () => {
  const daemon = await connectDaemon(newState());
  const runs = join(daemon.stateDir, 'runs');
  const gate = join(daemon.stateDir, 'gate');
  const reader = `(exec 3</dev/stdout >/dev/null 2>&1; echo > ${gate}; exec sleep 60) & exec sleep 60`;
  const first = await daemon.spawn('first', reader);
  await eventually(() => existsSync(gate));
  process.kill(first.pid, 'SIGKILL');
  await daemon.ended(first);
  expect(readdirSync(runs)).toEqual([`${first.run}.err`]);
});

test('the same start twice is one process; another start of a running service is refused', async () => {
  const daemon = await connectDaemon(newState());
  const first = await daemon.spawn('web', 'exec sleep 60');
  const again = await daemon.spawn('web', 'exec sleep 60', { run: first.run });
  expect(again.pid).toBe(first.pid);
  await expect(daemon.spawn('web', 'exec sleep 60')).rejects.toMatchObject({ code: 'already_running' });
  expect((await daemon.host.ask('runOf', { service: 'web' })).run).toMatchObject({
    run: first.run,
    pid: first.pid,
  });
  expect((await daemon.host.ask('runOf', { service: 'other' })).run).toBeNull();
});

test.each([null, { cols: 80, rows: 24 }])('a query during a start sees its process (%j)', async (pty) => {
  const daemon = await connectDaemon(newState());
  // Sent in one turn: the host reads all three before it completes the first.
  const started = daemon.spawn('web', 'exec sleep 1000', { pty });
  const [one, all] = await Promise.all([
    daemon.host.ask('runOf', { service: 'web' }),
    daemon.host.ask('runs', {}),
  ]);
  const { pid, run } = await started;
  expect(one.run).toMatchObject({ pid, run, end: null });
  expect(all.runs).toEqual([one.run]);
});

test('the memo that the daemon stores with a run is returned', async () => {
  const daemon = await connectDaemon(newState());
  const { run, service } = await daemon.spawn('web', 'exec sleep 60');
  const memo = { revision: 7, port: 1, ready: 'http://x', passed: true, deadline: 5, restarts: 3 };
  daemon.host.tell('note', { service, run, memo });
  expect((await daemon.host.ask('runOf', { service })).run?.memo).toEqual(memo);
});

test('a service is forgotten with its logs, but not while it runs', async () => {
  const daemon = await connectDaemon(newState());
  const started = await daemon.spawn('web', 'echo hello; exec sleep 60');
  await eventually(() => daemon.tail('web').length === 1);
  await expect(daemon.host.ask('forget', { service: 'web' })).rejects.toMatchObject({
    code: 'already_running',
  });
  await daemon.stop(started);
  await daemon.host.ask('forget', { service: 'web' });
  expect(existsSync(join(daemon.stateDir, 'logs', 'web'))).toBe(false);
  expect(await daemon.host.ask('runs', {})).toEqual({ runs: [] });
});

test('the host goes on after any number of defects in a row', async () => {
  const daemon = await connectDaemon(newState());
  const started = await daemon.spawn('web', 'exec sleep 60');
  const broken = null as unknown as { run: string; on: boolean };
  for (let attempt = 0; attempt < 10; attempt += 1)
    await expect(daemon.host.ask('watchTerminal', broken)).rejects.toMatchObject({ code: 'crashed' });
  expect(await daemon.stop(started)).toMatchObject({ signal: 'SIGTERM' });
});

test('logs that cannot be removed are named as often as it is tried, and the host goes on', async () => {
  const daemon = await connectDaemon(newState());
  await daemon.ended(await daemon.spawn('web', 'echo hi'));
  const logs = join(daemon.stateDir, 'logs');
  renameSync(logs, `${logs}.away`);
  // Nothing can be found below a link to itself, whoever asks.
  symlinkSync('logs', logs);
  for (let attempt = 0; attempt < 10; attempt += 1)
    await expect(daemon.host.ask('forget', { service: 'web' })).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringMatching(/^the logs of web cannot be removed: .*too many/i),
    });
  rmSync(logs);
  renameSync(`${logs}.away`, logs);
  await daemon.host.ask('forget', { service: 'web' });
  expect(existsSync(join(logs, 'web'))).toBe(false);
});

test('commands of one run are run one at a time, however many are asked for at once', async () => {
  const daemon = await connectDaemon(newState());
  const { run } = await daemon.spawn('web', 'exec sleep 100');
  const cmd = 'mkdir busy && sleep 0.1 && rmdir busy';
  const ask = () => daemon.host.ask('exec', { service: 'web', run, cmd, timeoutMs: 10_000 });
  const reports = await Promise.all([ask(), ask(), ask()]);
  expect(reports.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
});

test('a command that waits for another does not begin after the stop of its run', async () => {
  const daemon = await connectDaemon(newState());
  const { run } = await daemon.spawn('web', 'exec sleep 100', { cwd: daemon.stateDir });
  const begun = join(daemon.stateDir, 'begun');
  const ask = () =>
    daemon.host.ask('exec', { service: 'web', run, cmd: 'echo >> begun; exec sleep 100', timeoutMs: 60_000 });
  const reports = Promise.allSettled([ask(), ask()]);
  await eventually(() => existsSync(begun));
  await daemon.stop({ service: 'web', run });
  expect(await reports).toMatchObject([
    { status: 'fulfilled', value: { signal: 'SIGKILL' } },
    { status: 'rejected', reason: { code: 'not_running' } },
  ]);
  expect(readFileSync(begun, 'utf8')).toBe('\n');
});

test('a service without a log, or with a damaged one, is removed', async () => {
  const daemon = await connectDaemon(newState());
  const folder = join(daemon.stateDir, 'logs', 'web');
  await daemon.host.ask('forget', { service: 'web' });
  mkdirSync(join(folder, 'out.idx'), { recursive: true });
  await daemon.host.ask('forget', { service: 'web' });
  expect(existsSync(folder)).toBe(false);
});

test('a process is never blocked by unread output, and does not notice a missing reader', async () => {
  const daemon = await connectDaemon(newState());
  const started = await daemon.spawn('web', 'head -c 3000000 /dev/zero | tr "\\0" x; echo; echo done');
  await daemon.ended(started);
  expect(daemon.whole('web').length).toBe(3_000_006);
});

test('only followers are notified of the size of the log', async () => {
  const daemon = await connectDaemon(newState());
  await daemon.host.ask('follow', { service: 'a', on: true });
  const a = await daemon.spawn('a', 'echo 12345');
  const b = await daemon.spawn('b', 'echo 12345');
  await Promise.all([daemon.ended(a), daemon.ended(b)]);
  expect(daemon.grew.at(-1)).toEqual({ service: 'a', end: 6 });
  expect(daemon.grew.some(({ service }) => service === 'b')).toBe(false);
  daemon.grew.length = 0;
  await daemon.host.ask('follow', { service: 'a', on: false });
  await daemon.ended(await daemon.spawn('a', 'echo 12345'));
  expect(daemon.grew).toEqual([]);
});

test('logs are rotated byte by byte under load, within the limits of the daemon', async () => {
  const daemon = await connectDaemon(newState());
  await daemon.host.ask('logLimits', { maxBytes: 50_000, keep: 1_000 });
  const started = await daemon.spawn(
    'web',
    'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done',
  );
  // Read while it is written and rotated: the log must always be a prefix of the whole.
  const expected = Buffer.from(Array.from({ length: 20_000 }, (_, index) => `line ${index + 1}\n`).join(''));
  let looks = 0;
  await eventually(() => {
    const now = daemon.whole('web');
    expect(now.equals(expected.subarray(0, now.length))).toBe(true);
    looks += 1;
    return daemon.ends.some((end) => end.run === started.run);
  });
  expect(looks).toBeGreaterThan(1);
  expect(daemon.whole('web').equals(expected)).toBe(true);
  const logs = readdirSync(join(daemon.stateDir, 'logs', 'web')).filter((name) => name.endsWith('.log'));
  expect(logs.length).toBeGreaterThan(3);
  for (const name of logs)
    expect(statSync(join(daemon.stateDir, 'logs', 'web', name)).size).toBeLessThanOrEqual(
      Math.max(50_000, 65_536),
    );
});

test("the host's files are open to its user alone", async () => {
  const daemon = await connectDaemon(newState());
  await daemon.spawn('web', 'echo x; exec sleep 60');
  await eventually(() => daemon.tail('web').length === 1);
  for (const name of readdirSync(daemon.stateDir, { recursive: true, encoding: 'utf8' }))
    expect([name, (statSync(join(daemon.stateDir, name)).mode & 0o077).toString(8)]).toEqual([name, '0']);
});

test("processes that end at the same moment do not get each other's output", async () => {
  const daemon = await connectDaemon(newState());
  const names = Array.from({ length: 60 }, (_, index) => `s${index}`);
  const started = await Promise.all(
    names.map((name) => daemon.spawn(name, `echo ${name}; echo ${name} >&2`)),
  );
  for (const run of started) await daemon.ended(run);
  for (const name of names) expect(daemon.tail(name)).toEqual([name, name]);
});

test('a new follower is notified of output from just before', async () => {
  const daemon = await connectDaemon(newState());
  await daemon.spawn('web', 'echo one; exec sleep 60');
  await eventually(() => daemon.tail('web').includes('one'));
  expect(daemon.grew).toEqual([]);
  daemon.host.tell('follow', { service: 'web', on: true });
  await eventually(() => daemon.grew.length > 0);
  expect(daemon.grew).toEqual([{ service: 'web', end: 4 }]);
});
