import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { listeningSockets } from '../../src/adapters/process/listeners.ts';
import { processRow, processTable } from '../../src/adapters/process/process_table.ts';
import { freePort } from '../kit/free_ports.ts';
import { must } from '../kit/must.ts';
import {
  after,
  connectDaemon,
  type Daemon,
  eventually,
  hostsOf,
  isRunning,
  newState,
  useHost,
} from '../kit/process_host.ts';

useHost();

const listens = (port: number) => listeningSockets().some((row) => row.port === port);
/** A server on `port` that needs only python3. */
const server = (port: number) => `python3 -m http.server ${port} --bind 127.0.0.1`;
const clean = { exitUnknown: false, left: [], portFree: true };

async function serve(daemon: Daemon, cmd: string, port: number) {
  const started = await daemon.spawn('web', cmd, { port });
  await eventually(() => listens(port));
  return started;
}

test('a server ends by its signal, and its port is free', async () => {
  const daemon = await connectDaemon(newState());
  const port = freePort();
  const started = await serve(daemon, `exec ${server(port)}`, port);
  const report = await daemon.stop(started, { port });
  expect(report).toMatchObject({ ...clean, exitCode: null, signal: 'SIGTERM', escalated: false, reaped: 1 });
  expect(listens(port)).toBe(false);
  expect(await daemon.ended(started)).toMatchObject({ signal: 'SIGTERM', exitUnknown: false });
  expect((await daemon.host.ask('runOf', { service: 'web' })).run?.stopping).toBe(true);
});

test('a process that catches the signal reports its own exit code', async () => {
  const daemon = await connectDaemon(newState());
  const started = await daemon.spawn(
    'web',
    `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done`,
  );
  await eventually(() => daemon.tail('web').length > 0);
  expect(await daemon.stop(started)).toMatchObject({ ...clean, exitCode: 7, signal: null, escalated: false });
  expect(daemon.tail('web').at(-1)).toBe('bye');
});

test('another signal than SIGTERM is sent on request, also to a stopped process', async () => {
  const daemon = await connectDaemon(newState());
  const started = await daemon.spawn('web', 'exec sleep 60');
  process.kill(started.pid, 'SIGSTOP');
  expect(await daemon.stop(started, { signal: 'SIGINT' })).toMatchObject({
    ...clean,
    signal: 'SIGINT',
    escalated: false,
  });
  await expect(daemon.stop(started, { signal: 'SIGNONE' })).rejects.toMatchObject({ code: 'invalid_spec' });
});

// Three ways in which the server is not the started process; most supervisors leave it running.
test.each([
  ['a shell stays its parent', (port: number) => `${server(port)}; true`],
  ['it is behind two shells', (port: number) => `sh -c '${server(port)}; true'; true`],
  ['it has a session of its own', (port: number) => `setsid ${server(port)} & wait`],
  [
    'it has a session of its own and its parents are gone',
    (port: number) => `(setsid ${server(port)} &); exec sleep 60`,
  ],
  [
    'it forked twice and left everything',
    (port: number) =>
      `python3 -c "
import os,sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('python3', ['python3', '-m', 'http.server', '${port}', '--bind', '127.0.0.1'])
    os._exit(0)
os.wait()
"; exec sleep 60`,
  ],
])('a server ends when %s', async (_, cmd) => {
  const daemon = await connectDaemon(newState());
  const port = freePort();
  const started = await serve(daemon, cmd(port), port);
  const report = await daemon.stop(started, { port });
  expect(report).toMatchObject({ ...clean, signal: 'SIGTERM', escalated: false });
  expect(report.reaped).toBeGreaterThanOrEqual(2);
  expect(listens(port)).toBe(false);
});

test('a process that ignores the signal is killed after the grace period, with its whole tree', async () => {
  const daemon = await connectDaemon(newState());
  const port = freePort();
  const cmd = `trap '' TERM; (trap '' TERM; setsid sh -c "trap '' TERM; ${server(port)}") & while :; do sleep 0.05; done`;
  const started = await serve(daemon, cmd, port);
  const report = await daemon.stop(started, { port, graceMs: 200 });
  expect(report).toMatchObject({ ...clean, exitCode: null, signal: 'SIGKILL', escalated: true });
  expect(report.reaped).toBeGreaterThanOrEqual(3);
  expect(report.ms).toBeGreaterThanOrEqual(200);
  expect(listens(port)).toBe(false);
});

test('a grace period of 0 kills at once, and a second stop joins the first', async () => {
  const daemon = await connectDaemon(newState());
  const stubborn = async () => {
    const run = await daemon.spawn('web', `trap '' TERM; echo ready; while :; do sleep 0.05; done`);
    await eventually(() => daemon.tail('web').length > 0);
    return run;
  };
  const started = await stubborn();
  const long = daemon.stop(started, { graceMs: 400 });
  const joined = daemon.stop(started, { graceMs: 3_600_000 });
  expect(await joined).toEqual(await long);
  daemon.host.tell('acknowledge', started);
  await daemon.host.ask('forget', { service: 'web' });
  const other = await stubborn();
  expect(await daemon.stop(other, { graceMs: 0 })).toMatchObject({
    ...clean,
    signal: 'SIGKILL',
    escalated: true,
  });
});

test('a tree that forks without end is stopped as well', async () => {
  const daemon = await connectDaemon(newState());
  // Each generation is a process replaced by its child: any single scan finds it gone.
  const hop = `import os,time,signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('hopping', flush=True)
end = time.time() + 30
while time.time() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.02)`;
  const started = await daemon.spawn('web', `python3 -c "${hop}" & exec sleep 60`);
  const mark = Buffer.from(`BERTH_RUN=${started.run}\0`);
  const alive = () =>
    [...processTable().keys()].filter((pid) => {
      try {
        return isRunning(pid) && readFileSync(`/proc/${pid}/environ`).includes(mark);
      } catch {
        return false;
      }
    });
  await eventually(() => daemon.tail('web').length > 0);
  const report = await daemon.stop(started, { graceMs: 300 });
  expect(report).toMatchObject({ escalated: true, left: [], signal: 'SIGTERM' });
  expect(alive()).toEqual([]);
});

test('a foreign process on the port is named and left alone', async () => {
  const daemon = await connectDaemon(newState());
  const foreign = createServer().listen(0, '127.0.0.1');
  await once(foreign, 'listening');
  after(() => {
    foreign.close();
  });
  const address = foreign.address();
  const port = address && typeof address === 'object' ? address.port : 0;
  const started = await daemon.spawn('web', 'exec sleep 60', { port });
  const report = await daemon.stop(started, { port });
  expect(report).toMatchObject({ portFree: false, signal: 'SIGTERM', reaped: 1 });
  expect(report.left).toEqual([
    {
      pid: process.pid,
      command: expect.any(String),
      reason: `listens on port ${port} and bears no mark of this service`,
    },
  ]);
  expect(listens(port)).toBe(true);
});

test('an orphan without any mark is named on its port, and never killed on suspicion', async () => {
  const daemon = await connectDaemon(newState());
  const port = freePort();
  const cmd = `(env -i PATH="$PATH" setsid ${server(port)} &); exec sleep 60`;
  const started = await serve(daemon, cmd, port);
  const report = await daemon.stop(started, { port });
  expect(report).toMatchObject({ portFree: false, reaped: 1 });
  expect(report.left).toHaveLength(1);
  const [left] = report.left;
  expect(left?.command).toContain('http.server');
  expect(isRunning(must(left?.pid))).toBe(true);
  expect(processRow(must(left?.pid))?.ppid).toBe(daemon.connection.hostPid);
  process.kill(must(left?.pid), 'SIGKILL');
  // It has become a child of the host, which reaps its zombie.
  await eventually(() => !processTable().has(must(left?.pid)));
});

test('processes left behind when a run ended are ended by a stop of that run', async () => {
  const daemon = await connectDaemon(newState());
  const port = freePort();
  const started = await serve(daemon, `(setsid ${server(port)} &); sleep 0.3; exit 3`, port);
  expect(await daemon.ended(started)).toMatchObject({ exitCode: 3 });
  expect(listens(port)).toBe(true);
  expect(await daemon.stop(started, { port })).toMatchObject({ ...clean, exitCode: 3, reaped: 1 });
  daemon.host.tell('acknowledge', started);
  expect(await daemon.stop(started, { port })).toMatchObject({ exitUnknown: true, reaped: 0, left: [] });
});

test('processes of another run, the host and the daemon are never ended, wherever they are', async () => {
  const daemon = await connectDaemon(newState());
  // An agent may have started the daemon or an unrelated service: here one has the marks of another's tree.
  const other = await daemon.spawn('other', 'exec sleep 60');
  const started = await daemon.spawn('web', `sleep 61 & echo ready; exec sleep 60`, { env: [['X', '1']] });
  await eventually(() => daemon.tail('web').length > 0);
  expect(await daemon.stop(started)).toMatchObject({ reaped: 2 });
  expect(isRunning(other.pid)).toBe(true);
  expect(hostsOf(daemon.stateDir)).toEqual([daemon.connection.hostPid]);
});

test('a hundred services end at once with shared scans', async () => {
  const daemon = await connectDaemon(newState());
  const names = Array.from({ length: 100 }, (_, index) => `s${index}`);
  const started = await Promise.all(names.map((name) => daemon.spawn(name, 'exec sleep 60')));
  const { hostPid } = daemon.connection;
  const reads = () => Number(/^syscr: (\d+)$/m.exec(readFileSync(`/proc/${hostPid}/io`, 'latin1'))?.[1]);
  const before = reads();
  const reports = await Promise.all(started.map((run) => daemon.stop(run)));
  for (const report of reports) expect(report).toMatchObject({ ...clean, signal: 'SIGTERM', reaped: 1 });
  // One scan per stop would mean a hundred passes over more than a hundred processes.
  expect(reads() - before).toBeLessThan(100 * 100);
});
