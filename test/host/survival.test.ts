// docs/reference.md "Resilience", below the daemon.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isListening, readFirstLine, socketPath } from '../../src/adapters/host/host_socket.ts';
import { spawnHost } from '../../src/adapters/host/spawn_host.ts';
import { socketPipe } from '../../src/adapters/pipes.ts';
import { processRow } from '../../src/adapters/process/process_table.ts';
import { RunLedger } from '../../src/host/run_ledger.ts';
import { readLog } from '../../src/logs/reader.ts';
import type { Hello } from '../../src/protocol/host_handshake.ts';
import { OWN_LOG } from '../../src/settings/limits.ts';
import { must } from '../kit/must.ts';
import {
  after,
  connectDaemon,
  type Daemon,
  daemonOver,
  entry,
  eventually,
  hasOnlyItsOwn,
  hostsOf,
  isRunning,
  newState,
  useHost,
} from '../kit/process_host.ts';

useHost();

const LINES = 50_000;
const COUNT = `i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo line $i; done; exec sleep 60`;
const allLines = () => Array.from({ length: LINES }, (_, index) => `line ${index + 1}\n`).join('');

/** A process that stands for a daemon: it lives until it is killed. */
async function standIn(): Promise<ChildProcess & { hello: (more?: Partial<Hello>) => Hello }> {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const pid = must(child.pid);
  const startTicks = processRow(pid)?.startTicks ?? 0;
  after(() => {
    child.kill('SIGKILL');
  });
  const hello = (more = {}): Hello => ({
    ...{ protocol: 1, version: 'test', daemonPid: pid, daemonStart: startTicks },
    ...{ session: `of ${pid}`, node: 'services-0', services: 1 },
    ...more,
  });
  return Object.assign(child, { hello });
}

/** Sends a first line to the host's socket and returns the response with the socket. */
async function greet(stateDir: string, line: string) {
  const { path, release } = socketPath(join(stateDir, 'host'));
  const socket = createConnection(path);
  after(() => {
    socket.destroy();
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  release();
  socket.write(line);
  const answer = JSON.parse(await readFirstLine(socket));
  return { socket, answer };
}
const say = (stateDir: string, hello: unknown) => greet(stateDir, `${JSON.stringify(hello)}\n`);

async function connectStandIn(stateDir: string, hello: Hello): Promise<Daemon> {
  const { socket, answer } = await say(stateDir, hello);
  expect(answer.is).toBe('welcome');
  const pipe = socketPipe(socket);
  const flowing = {
    ...pipe,
    receive: (...to: Parameters<typeof pipe.receive>) => [pipe.receive(...to), socket.resume()],
  };
  return daemonOver(stateDir, { ...answer, pipe: flowing }, hello.node);
}

/** A host that listens, for the named daemon or for the first to connect. */
async function startedHost(stateDir: string, startedBy: readonly string[] = []): Promise<number> {
  const child = spawn(process.execPath, [entry, stateDir, ...startedBy], {
    detached: true,
    cwd: '/',
    stdio: 'ignore',
  });
  await once(child, 'spawn');
  await eventually(() => isListening(join(stateDir, 'host')).catch(() => false));
  return eventually(() => hostsOf(stateDir)[0]);
}

async function killHost(daemon: Daemon): Promise<void> {
  process.kill(daemon.connection.hostPid, 'SIGKILL');
  await daemon.lost;
}

test('a host keeps its own log short', async () => {
  const state = newState();
  await connectDaemon(state);
  const log = join(state, 'host', 'host.log');
  appendFileSync(log, `${'x'.repeat(2 * OWN_LOG.maxBytes)}\nthe last line\n`);
  // The log is emptied before its end is written: what is kept is the last to be whole.
  await eventually(() => existsSync(`${log}.1`) && statSync(`${log}.1`).size === OWN_LOG.maxBytes);
  expect(statSync(log).size).toBe(0);
  const kept = readFileSync(`${log}.1`, 'utf8');
  expect(kept.endsWith('\nthe last line\n')).toBe(true);
});

test('no line is lost or doubled when the daemon restarts in between', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  await first.host.ask('logLimits', { maxBytes: 100_000, keep: 1_000 });
  const started = await first.spawn('count', COUNT);
  await eventually(() => first.tail('count').length > 0);
  first.disconnect();
  await eventually(() => first.whole('count').length > 100_000);
  const second = await connectDaemon(stateDir);
  expect(second.connection.hostPid).toBe(first.connection.hostPid);
  expect((await second.host.ask('runOf', { service: 'count' })).run).toMatchObject({
    pid: started.pid,
    end: null,
  });
  await eventually(() => second.tail('count', 1)[0] === `line ${LINES}`);
  expect(second.whole('count').toString() === allLines()).toBe(true);
});

test('an agent keeps its terminal while the daemon is away', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const cmd = 'echo ready; while read line; do echo "got $line"; done';
  const agent = await first.spawn('agent', cmd, { pty: { cols: 80, rows: 24 } });
  await eventually(() => first.tail('agent').includes('ready'));
  first.disconnect();
  const second = await connectDaemon(stateDir);
  second.host.tell('write', { ...agent, data: Buffer.from('hello\n') });
  await eventually(() => second.tail('agent').includes('got hello'));
  expect(isRunning(agent.pid)).toBe(true);
});

test('no service ends with the host; the next one loses only output being written', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('count', COUNT);
  await eventually(() => first.whole('count').length > 50_000);
  await killHost(first);
  // Output meanwhile stays in the pipe, until it is full.
  await eventually(() => !isRunning(first.connection.hostPid));
  await eventually(() => processRow(started.pid)?.state !== 'R');
  expect(isRunning(started.pid)).toBe(true);
  const second = await connectDaemon(stateDir);
  expect(second.connection.hostPid).not.toBe(first.connection.hostPid);
  expect((await second.host.ask('runs', {})).runs).toMatchObject([
    { run: started.run, pid: started.pid, end: null },
  ]);
  await eventually(() => second.tail('count', 1)[0] === `line ${LINES}`);
  const read = second.whole('count').toString();
  const missing = allLines().length - read.length;
  expect(missing).toBeGreaterThanOrEqual(0);
  expect(missing).toBeLessThanOrEqual(64 * 1024);
  const numbers = read.match(/(?<=^line )\d+$/gm)?.map(Number) ?? [];
  expect(numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0))).toBe(true);

  // Its end is noticed; its exit code is unknown.
  process.kill(started.pid, 'SIGKILL');
  expect(await second.ended(started)).toMatchObject({
    exitCode: null,
    signal: null,
    exitUnknown: true,
    cause: 'exit',
  });
});

test('an adopted run is stopped with its tree, and one that ended meanwhile has an unknown end', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const tree = await first.spawn('tree', '(setsid sleep 61 &); sleep 62 & echo ready; wait');
  const short = await first.spawn('short', 'echo said; exec sleep 60');
  await eventually(() => first.tail('tree').length > 0 && first.tail('short').length > 0);
  await killHost(first);
  process.kill(short.pid, 'SIGKILL');
  await eventually(() => !isRunning(short.pid));
  const second = await connectDaemon(stateDir);
  const { runs } = await second.host.ask('runs', {});
  expect(runs.find((row) => row.run === short.run)?.end).toMatchObject({
    exitCode: null,
    exitUnknown: true,
  });
  expect(await second.stop(tree)).toMatchObject({
    exitCode: null,
    exitUnknown: true,
    escalated: false,
    reaped: 3,
    left: [],
  });
  expect(await second.ended(tree)).toMatchObject({ exitUnknown: true });
});

test('an agent ends with the host, even one that ignores the hang-up', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const pty = { cols: 80, rows: 24 };
  const plain = await first.spawn('plain', 'exec sleep 60', { pty });
  const deaf = await first.spawn('deaf', `trap '' HUP; echo ready; while :; do sleep 0.05; done`, { pty });
  await eventually(() => first.tail('deaf').length > 0);
  await killHost(first);
  const second = await connectDaemon(stateDir);
  for (const run of [plain, deaf])
    expect(await second.ended(run)).toMatchObject({ exitCode: null, signal: 'SIGHUP', exitUnknown: true });
  expect([isRunning(plain.pid), isRunning(deaf.pid)]).toEqual([false, false]);
});

test('a stop completes without a daemon, and across the death of the host', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const stubborn = `trap '' TERM; echo ready; while :; do sleep 0.05; done`;
  const alone = await first.spawn('alone', stubborn);
  const twice = await first.spawn('twice', stubborn);
  await eventually(() => first.tail('alone').length > 0 && first.tail('twice').length > 0);
  void first.stop(alone, { graceMs: 300 }).catch(() => undefined);
  await eventually(async () => (await first.host.ask('runOf', { service: 'alone' })).run?.stopping);
  first.disconnect();
  await eventually(() => !isRunning(alone.pid));
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runOf', { service: 'alone' })).run).toMatchObject({
    stopping: true,
    end: { signal: 'SIGKILL', exitUnknown: false },
  });
  void second.stop(twice, { graceMs: 500 }).catch(() => undefined);
  await eventually(async () => (await second.host.ask('runOf', { service: 'twice' })).run?.stopping);
  await killHost(second);
  const third = await connectDaemon(stateDir);
  // Its grace period may be over by now: it counts from the order.
  expect((await third.host.ask('runOf', { service: 'twice' })).run).toMatchObject({ stopping: true });
  expect(await third.ended(twice)).toMatchObject({ exitUnknown: true });
  expect(isRunning(twice.pid)).toBe(false);
});

test('a host killed between the record of a stop and its signal has the next one send it, once', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const counting = `n=0; trap 'n=$((n+1)); echo got $n; [ $n = 1 ] && exit 7' TERM; echo ready; while :; do sleep 0.05; done`;
  const unsent = await first.spawn('unsent', counting);
  const sent = await first.spawn('sent', `trap 'echo got' TERM; echo ready; while :; do sleep 0.05; done`);
  await eventually(() => first.tail('unsent').length > 0 && first.tail('sent').length > 0);
  void first.stop(sent, { graceMs: 60_000 }).catch(() => undefined);
  await eventually(() => first.tail('sent').includes('got'));
  await killHost(first);
  const ledger = new RunLedger(join(stateDir, 'host', 'ledger'));
  expect(must(ledger.rows.get(sent.run)).stop).not.toHaveProperty('isSent');
  const stop = { signal: 'SIGTERM', graceMs: 60_000, at: Date.now(), isSent: false } as const;
  ledger.put({ ...must(ledger.rows.get(unsent.run)), stop });
  const second = await connectDaemon(stateDir);
  await eventually(() => !isRunning(unsent.pid));
  await eventually(() => second.tail('unsent').includes('got 1'));
  expect(second.tail('sent').filter((line) => line === 'got')).toHaveLength(1);
  process.kill(-sent.pid, 'SIGKILL');
});

test('a reused pid is neither adopted nor ended', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('web', 'exec sleep 60');
  await killHost(first);
  process.kill(started.pid, 'SIGKILL');
  await eventually(() => !isRunning(started.pid));
  // As if the pid now belonged to an innocent process, which leads its group as the service did.
  const innocent = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  await once(innocent, 'spawn');
  after(() => {
    innocent.kill('SIGKILL');
  });
  const ledger = new RunLedger(join(stateDir, 'host', 'ledger'));
  const { pid, startTicks } = must(processRow(must(innocent.pid)));
  // Pids do not repeat within a tick, as this test would need where it takes less than one.
  ledger.put({ ...must(ledger.rows.get(started.run)), pid, startTicks: startTicks - 1 });
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runOf', { service: 'web' })).run?.end).toMatchObject({
    exitUnknown: true,
  });
  expect(await second.stop(started)).toMatchObject({ reaped: 0, left: [] });
  expect(isRunning(must(innocent.pid))).toBe(true);
});

test('a reboot of the machine has ended everything', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('web', 'exec sleep 60');
  await killHost(first);
  const ledger = new RunLedger(join(stateDir, 'host', 'ledger'));
  for (const row of ledger.rows.values()) ledger.put({ ...row, boot: 'another' });
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runOf', { service: 'web' })).run?.end).toMatchObject({
    cause: 'reboot',
    exitCode: null,
    signal: null,
  });
  // The pid now belongs to an unrelated process.
  expect(isRunning(started.pid)).toBe(true);
});

test('a host killed between a start and its ledger row finds the process by its mark', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('web', 'exec sleep 60');
  const never = await first.spawn('never', 'exec sleep 60');
  await first.stop(never);
  await killHost(first);
  const ledger = new RunLedger(join(stateDir, 'host', 'ledger'));
  for (const row of ledger.rows.values())
    ledger.put({ ...row, pid: 0, startTicks: 0, end: null, stop: null });
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runs', {})).runs).toMatchObject([
    { service: 'web', pid: started.pid, end: null },
  ]);
  expect(await second.stop(started)).toMatchObject({ reaped: 1 });
});

test('a host killed between a start and its ledger row stops what the ended process has left', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('web', 'sleep 60 & echo $!; exec sleep 61');
  const child = Number(await eventually(() => first.tail('web')[0]));
  await killHost(first);
  process.kill(started.pid, 'SIGKILL');
  await eventually(() => !isRunning(started.pid));
  const ledger = new RunLedger(join(stateDir, 'host', 'ledger'));
  for (const row of ledger.rows.values())
    ledger.put({ ...row, pid: 0, startTicks: 0, end: null, stop: null });
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runOf', { service: 'web' })).run?.end).toMatchObject({ exitUnknown: true });
  expect(isRunning(child)).toBe(true);
  expect(await second.stop(started)).toMatchObject({ reaped: 1 });
  expect(isRunning(child)).toBe(false);
});

test('a torn ledger costs at most its last line', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('web', 'exec sleep 60');
  await killHost(first);
  appendFileSync(join(stateDir, 'host', 'ledger'), '{"put":{"service":"web","run":"torn');
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runs', {})).runs).toMatchObject([{ run: started.run, pid: started.pid }]);
});

test('of hosts started simultaneously one remains, with or without the remains of a killed one', async () => {
  const stateDir = newState();
  for (let round = 0; round < 3; round += 1) {
    for (let index = 0; index < 5; index += 1) spawnHost(stateDir, entry);
    const daemons = await Promise.all(
      [0, 1, 2].map((index) => connectDaemon(stateDir, { node: `services-${index}` })),
    );
    const pids = new Set(daemons.map((daemon) => daemon.connection.hostPid));
    expect(pids.size).toBe(1);
    await eventually(() => hostsOf(stateDir).length === 1);
    const [first] = daemons;
    if (first) await killHost(first);
    expect(existsSync(join(stateDir, 'host', 'host.sock'))).toBe(true);
  }
});

test('a second daemon is refused with the pid of the first, as long as the first is alive', async () => {
  const stateDir = newState();
  await startedHost(stateDir);
  const one = await standIn();
  const first = await connectStandIn(stateDir, one.hello());
  const started = await first.spawn('web', 'exec sleep 60');
  await expect(connectDaemon(stateDir, { session: 'two' })).rejects.toMatchObject({
    code: 'second_daemon',
    detail: one.pid,
  });
  // Its other threads are admitted, and all of them may disconnect for some time.
  const thread = await connectStandIn(stateDir, one.hello({ node: 'services-1' }));
  expect((await thread.host.ask('runs', {})).runs).toHaveLength(1);
  thread.disconnect();
  first.disconnect();
  await expect(connectDaemon(stateDir, { session: 'two' })).rejects.toMatchObject({ code: 'second_daemon' });
  one.kill('SIGKILL');
  await once(one, 'exit');
  const second = await connectDaemon(stateDir, { session: 'two' });
  expect((await second.host.ask('runs', {})).runs).toMatchObject([{ pid: started.pid }]);
  // A later process with the pid of the first is not the first.
  await expect(connectStandIn(stateDir, one.hello({ daemonPid: process.pid }))).rejects.toThrow();
});

test('a host is reserved for the daemon that started it while that daemon is alive', async () => {
  const stateDir = newState();
  const [one, two] = [await standIn(), await standIn()];
  const { daemonPid, daemonStart } = one.hello();
  const mine = [`${daemonPid}`, `${daemonStart}`];
  await startedHost(stateDir, mine);
  expect((await say(stateDir, two.hello())).answer).toEqual({ is: 'taken', daemonPid });
  // A process with its pid and another start is not that daemon.
  expect((await say(stateDir, one.hello({ daemonStart: daemonStart + 1 }))).answer).toMatchObject({
    is: 'taken',
  });
  await connectStandIn(stateDir, one.hello());
  const other = newState();
  await startedHost(other, mine);
  one.kill('SIGKILL');
  await once(one, 'exit');
  await connectStandIn(other, two.hello());
  await connectStandIn(stateDir, two.hello());
});

test('a client without a proper hello is turned away, and harms nobody', async () => {
  const stateDir = newState();
  await startedHost(stateDir);
  const one = await standIn();
  for (const line of [
    'rubbish\n',
    '{}\n',
    'null\n',
    '[1]\n',
    `${JSON.stringify({ ...one.hello(), daemonPid: 'x' })}\n`,
  ])
    expect((await greet(stateDir, line)).answer).toMatchObject({ is: 'refused' });
  expect((await greet(stateDir, 'x'.repeat(10_000))).answer).toMatchObject({ is: 'refused' });
  expect((await say(stateDir, one.hello({ protocol: 99 }))).answer).toEqual({
    is: 'refused',
    reason: 'it speaks protocol 1, not 99',
  });
  const first = await connectStandIn(stateDir, one.hello({ protocol: 2 }));
  expect(await first.host.ask('runs', {})).toEqual({ runs: [] });
});

test('a state directory with a long name works', async () => {
  const stateDir = join(newState(), 'x'.repeat(120), 'y'.repeat(60));
  mkdirSync(stateDir, { recursive: true });
  after(async () => {
    for (const pid of hostsOf(stateDir)) process.kill(pid, 'SIGKILL');
    await eventually(() => hostsOf(stateDir).length === 0);
  });
  const daemon = await connectDaemon(stateDir);
  await daemon.ended(await daemon.spawn('web', 'echo hello'));
  expect(daemon.tail('web')).toEqual(['hello']);
  await killHost(daemon);
  expect((await connectDaemon(stateDir)).connection.hostPid).not.toBe(daemon.connection.hostPid);
});

test('a host waits for the lock of one that is ending and no longer answers', async () => {
  const stateDir = newState();
  mkdirSync(join(stateDir, 'host'), { recursive: true });
  const lock = join(stateDir, 'host', 'lock');
  const holder = spawn('flock', ['--exclusive', '--no-fork', lock, 'sh', '-c', 'echo held; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  after(() => void holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  spawnHost(stateDir, entry);
  const [waiting] = await eventually(() => (hostsOf(stateDir).length > 0 ? hostsOf(stateDir) : null));
  // By the time a host started later listens, this one would as well.
  await startedHost(newState());
  expect(hostsOf(stateDir)).toEqual([waiting]);
  expect(existsSync(join(stateDir, 'host', 'host.sock'))).toBe(false);
  holder.kill('SIGKILL');
  await eventually(() => existsSync(join(stateDir, 'host', 'host.sock')));
  expect(hostsOf(stateDir)).toEqual([waiting]);
});

test('the host ends once it has no process and no daemon, and not before', async () => {
  const stateDir = newState();
  const hostPid = await startedHost(stateDir);
  const one = await standIn();
  const first = await connectStandIn(stateDir, one.hello());
  const started = await first.spawn('web', `while [ ! -e ${stateDir}/gate ]; do sleep 0.02; done; exit 9`);
  first.disconnect();
  one.kill('SIGKILL');
  await once(one, 'exit');
  // By the time a host without a process has ended for the same reason, this one would have ended as well.
  const idle = newState();
  const idleHost = await startedHost(idle);
  const two = await standIn();
  (await connectStandIn(idle, two.hello())).disconnect();
  two.kill('SIGKILL');
  await eventually(() => !isRunning(idleHost));
  expect(isRunning(hostPid)).toBe(true);
  writeFileSync(join(stateDir, 'gate'), '');
  await eventually(() => !isRunning(hostPid));
  expect(existsSync(join(stateDir, 'host', 'host.sock'))).toBe(false);
  expect(readdirSync(join(stateDir, 'runs'))).toEqual([]);
  // Unacknowledged ends are still known.
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runOf', { service: 'web' })).run?.end).toMatchObject({
    run: started.run,
    exitCode: 9,
  });
});

test('a daemon of another version gets a new host as soon as the old one has no process', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const started = await first.spawn('web', 'exec sleep 60');
  first.disconnect();
  const newer = await connectDaemon(stateDir, { version: 'newer' });
  expect(newer.connection.hostPid).toBe(first.connection.hostPid);
  expect(await newer.stop(started)).toMatchObject({ reaped: 1 });
  await newer.lost;
  await eventually(() => !isRunning(first.connection.hostPid));
  const again = await connectDaemon(stateDir, { version: 'newer' });
  expect(again.connection.hostPid).not.toBe(first.connection.hostPid);
});

test('a host without a process yields at once to a daemon of another version', async () => {
  const stateDir = newState();
  const hostPid = await startedHost(stateDir);
  const one = await standIn();
  const first = await connectStandIn(stateDir, one.hello());
  const second = await say(stateDir, one.hello({ version: 'newer' }));
  expect(second.answer).toEqual({ is: 'leaving' });
  await first.lost;
  await eventually(() => !isRunning(hostPid));
});

test('a host passes none of its inherited descriptors on', async () => {
  const stateDir = newState();
  mkdirSync(join(stateDir, 'host'), { recursive: true });
  // As a daemon with a leaking library would start it.
  const shell = spawn(
    'sh',
    ['-c', `exec 7</etc/passwd 8>>${stateDir}/leak; exec ${process.execPath} ${entry} ${stateDir}`],
    {
      stdio: 'ignore',
    },
  );
  await once(shell, 'spawn');
  await eventually(() => existsSync(join(stateDir, 'host', 'host.sock')));
  const daemon = await connectDaemon(stateDir);
  expect(daemon.connection.hostPid).toBe(shell.pid);
  const pipes = await daemon.spawn('pipes', 'exec sleep 60');
  const agent = await daemon.spawn('agent', 'exec sleep 60', { pty: { cols: 80, rows: 24 } });
  for (const { pid } of [pipes, agent]) {
    await hasOnlyItsOwn(pid);
  }
});

test('a host whose socket was removed, or replaced, opens another', async () => {
  const stateDir = newState();
  const path = join(stateDir, 'host', 'host.sock');
  const first = await connectDaemon(stateDir);
  const { pid } = await first.spawn('web', 'exec sleep 100');
  for (const odd of [() => {}, () => writeFileSync(path, ''), () => mkdirSync(path)]) {
    rmSync(path);
    odd();
    await eventually(() => lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true);
  }
  // What was connected stays so.
  expect((await first.host.ask('runs', {})).runs).toMatchObject([{ pid }]);
  first.disconnect();
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runs', {})).runs).toMatchObject([{ pid }]);
});

test('a host whose folder was removed makes it anew, and stays the only one', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const { pid } = await first.spawn('web', 'exec sleep 100');
  const [hostPid] = hostsOf(stateDir);
  first.disconnect();
  rmSync(join(stateDir, 'host'), { recursive: true });
  const second = await connectDaemon(stateDir);
  expect(second.connection.hostPid).toBe(hostPid);
  // The one that the daemon started has found the lock taken.
  await eventually(() => hostsOf(stateDir).length === 1);
  expect((await second.host.ask('runs', {})).runs).toMatchObject([{ pid }]);
});

test('a host that was killed, and then its folder removed, has its runs adopted', async () => {
  const stateDir = newState();
  const first = await connectDaemon(stateDir);
  const { pid } = await first.spawn('web', 'exec sleep 100');
  await killHost(first);
  rmSync(join(stateDir, 'host'), { recursive: true });
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runs', {})).runs).toMatchObject([{ pid, end: null }]);
});

test.each([
  ['emptied', () => ''],
  ['cut in half', (text: string) => text.slice(0, text.length / 2)],
  ['replaced by rubbish', () => 'rubbish'],
])('a ledger that was %s is made anew from the marks of the processes', async (_, damage) => {
  const stateDir = newState();
  const ledger = join(stateDir, 'host', 'ledger');
  const first = await connectDaemon(stateDir);
  const cmd = 'while :; do echo $BERTH_RUN; sleep 0.05; done';
  const runs = [await first.spawn('one', cmd), await first.spawn('two', cmd)];
  await killHost(first);
  writeFileSync(ledger, damage(readFileSync(ledger, 'utf8')));
  const second = await connectDaemon(stateDir);
  const expected = ['one', 'two'].map((service, at) => ({ service, pid: must(runs[at]).pid, end: null }));
  const found = (await second.host.ask('runs', {})).runs;
  expect(found.toSorted((a, b) => (a.service < b.service ? -1 : 1))).toMatchObject(expected);
  const before = second.tail('two').length;
  await eventually(() => second.tail('two').length > before);
  for (const run of runs) expect(await second.stop(run)).toMatchObject({ left: [] });
});

test('the folder of the pipes is made anew, and no name leads out of the folders', async () => {
  const stateDir = newState();
  const { host, spawn: start } = await connectDaemon(stateDir);
  await start('one', 'exec sleep 100');
  rmSync(join(stateDir, 'runs'), { recursive: true });
  const two = await start('two', 'echo two');
  await eventually(async () => (await host.ask('runOf', { service: 'two' })).run?.end);
  expect(readLog(join(stateDir, 'logs', 'two'), 0, 100).bytes.toString()).toMatch(/two/);
  expect(two.pid).toBeGreaterThan(1);
  const outside = join(stateDir, 'outside');
  writeFileSync(outside, '');
  await expect(host.ask('forget', { service: '../outside' })).rejects.toMatchObject({ code: 'invalid_spec' });
  await expect(start('../outside', 'true')).rejects.toMatchObject({ code: 'invalid_spec' });
  expect(existsSync(outside)).toBe(true);
});
