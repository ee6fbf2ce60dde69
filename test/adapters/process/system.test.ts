import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import os from 'node:os';
import { afterEach, expect, test, vi } from 'vitest';
import { loadLibc } from '../../../src/adapters/process/libc.ts';
import { openListenerTable } from '../../../src/adapters/process/listener_table.ts';
import {
  isLocalAddress,
  type ListeningSocket,
  listeningSockets,
} from '../../../src/adapters/process/listeners.ts';
import type { ProgramSpec } from '../../../src/adapters/process/posix_spawn.ts';
import {
  bootId,
  commandOf,
  environOf,
  isAlive,
  isRunning,
  mayBeAlive,
  processRow,
  processTable,
  residentBytes,
} from '../../../src/adapters/process/process_table.ts';
import { socketHolder } from '../../../src/adapters/process/socket_holder.ts';
import { otherUsers, userName } from '../../../src/adapters/process/users.ts';
import { eventually } from '../../kit/eventually.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  while (closers.length > 0) await closers.pop()?.();
});

function child(command: string, args: string[], env: NodeJS.ProcessEnv = {}): ChildProcess & { pid: number } {
  const started = spawn(command, args, {
    detached: true,
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], ...env },
  });
  closers.push(async () => {
    if (started.exitCode !== null || started.signalCode !== null) return;
    started.kill('SIGKILL');
    await once(started, 'exit');
  });
  if (started.pid === undefined) throw new Error(`no process: ${command}`);
  return Object.assign(started, { pid: started.pid });
}

async function listen(host: string): Promise<Server> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  closers.push(() => {
    server.close();
  });
  return server;
}

const portOf = (server: Server) => {
  const address = server.address();
  return address && typeof address === 'object' ? address.port : 0;
};

test('a row of the process table has parent, group, session, start and state', () => {
  const { pid } = child('sleep', ['60']);
  const row = processTable().get(pid);
  expect(row).toMatchObject({ pid, ppid: process.pid, pgid: pid, session: pid, comm: 'sleep' });
  expect(row?.startTicks).toBeGreaterThan(0);
  expect(residentBytes(pid)).toBeGreaterThanOrEqual(4096);
  expect(residentBytes(0x3fffffff)).toBe(0);
  expect(isRunning(row)).toBe(true);
  expect(row && commandOf(row)).toBe('sleep 60');
});

test('a name with parentheses and spaces does not shift the fields', () => {
  const { pid } = child('python3', [
    '-c',
    'import ctypes,time; ctypes.CDLL(None).prctl(15, b"a) R 1 (b", 0, 0, 0); print(flush=True); time.sleep(60)',
  ]);
  return expect
    .poll(() => processRow(pid))
    .toMatchObject({ comm: 'a) R 1 (b', ppid: process.pid, pgid: pid });
});

test('a process is identified by its pid and start, and a zombie does not run', async () => {
  const parent = child('sh', ['-c', 'sleep 0 & exec sleep 60']);
  const row = processRow(parent.pid);
  expect(row).toBeDefined();
  expect(isAlive(parent.pid, row?.startTicks ?? 0)).toBe(true);
  expect(isAlive(parent.pid, (row?.startTicks ?? 0) - 1)).toBe(false);
  const zombie = () => [...processTable().values()].find((one) => one.ppid === parent.pid);
  await expect.poll(() => zombie()?.state).toBe('Z');
  expect(isRunning(zombie())).toBe(false);
});

function outcome(look: () => unknown): unknown {
  try {
    return look();
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code;
  }
}

test('a process counts as alive also when no descriptor is left to check it', () => {
  const { pid } = child('sleep', ['60']);
  const startTicks = processRow(pid)?.startTicks ?? 0;
  const own = `prlimit --pid ${process.pid} --nofile`;
  const before = execFileSync('sh', ['-c', `${own} --noheadings -o SOFT`])
    .toString()
    .trim();
  // It stops itself until this test has checked.
  const warden = child('sh', ['-c', `${own}=3:; kill -STOP $$; ${own}=${before}:`]);
  const turn = new Int32Array(new SharedArrayBuffer(4));
  // Without a turn of the loop: nothing else in this process may need a descriptor meanwhile.
  while (processRow(pid)) Atomics.wait(turn, 0, 0, 5);
  const seen = [isAlive(pid, startTicks), isAlive(0x3fffffff, 1)];
  const looks = [processTable, () => environOf(pid)].map(outcome);
  // It may not have stopped yet.
  while (!processRow(pid)) {
    process.kill(warden.pid, 'SIGCONT');
    Atomics.wait(turn, 0, 0, 5);
  }
  expect(seen).toEqual([true, false]);
  // An empty table would mean that nothing runs.
  expect(looks).toEqual(['EMFILE', 'EMFILE']);
});

test('a pid that does not exist is not alive', () => {
  expect(processRow(0x3fffffff)).toBeUndefined();
  expect(environOf(0x3fffffff)).toBeUndefined();
  expect(isAlive(0x3fffffff, 1)).toBe(false);
});

test('a process without a readable start is identified by its pid alone', () => {
  expect(mayBeAlive(process.pid, 0)).toBe(true);
  expect(mayBeAlive(process.pid, 1)).toBe(false);
  expect(mayBeAlive(0x3fffffff, 0)).toBe(false);
});

test('the environment of a process is readable by its user', async () => {
  const { pid } = child('sleep', ['60'], { BERTH_RUN: 'abc' });
  await expect.poll(() => environOf(pid)?.includes('BERTH_RUN=abc\0')).toBe(true);
});

test('the boot has an id', () => expect(bootId()).toMatch(/^[0-9a-f-]{36}$/));

/** The inodes of the sockets of this process. */
function ownSockets(): Set<number> {
  const links = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return [];
    }
  });
  return new Set(links.map((link) => Number(/^socket:\[(\d+)\]$/.exec(link)?.[1])));
}

test('listeners of both families are found with address, port, user and holder', async () => {
  const [four, six, any] = await Promise.all([listen('127.0.0.1'), listen('::1'), listen('::')]);
  const inodes = ownSockets();
  const rows = listeningSockets().filter(({ inode }) => inodes.has(inode));
  const at = (server: Server) => rows.find((row) => row.port === portOf(server));
  expect(at(four)).toMatchObject({ address: '127.0.0.1', uid: process.getuid?.() });
  expect(at(six)?.address).toBe('::1');
  expect(at(any)?.address).toBe('::');
  expect((await socketHolder(at(four)?.inode ?? 0))?.pid).toBe(process.pid);
  expect(await socketHolder(1)).toBeUndefined();
});

test('a search for the holder of a socket lets other work run', async () => {
  const server = await listen('127.0.0.1');
  const inodes = ownSockets();
  const row = listeningSockets().find(({ inode, port }) => inodes.has(inode) && port === portOf(server));
  // For the search, a millisecond passes with each descriptor.
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now++);
  let turns = 0;
  const timer = setInterval(() => {}, 1_000);
  const count = (): void => {
    turns += 1;
    if (timer.hasRef()) setImmediate(count);
  };
  setImmediate(count);
  const [first, second] = await Promise.all([socketHolder(row?.inode ?? 0), socketHolder(row?.inode ?? 0)]);
  clearInterval(timer.unref());
  clock.mockRestore();
  expect(first?.pid).toBe(process.pid);
  expect(second).toBe(first);
  // This process alone has some dozens, and a slice has four.
  expect(turns).toBeGreaterThan(2);
});

test("the kernel's list of listeners equals that of /proc, for both families", async () => {
  const servers = await Promise.all(
    Array.from({ length: 300 }, (_, index) => listen(['127.0.0.1', '::1', '::', '0.0.0.0'][index % 4] ?? '')),
  );
  const ports = new Set(servers.map(portOf));
  // Other programs start and stop listening meanwhile, at times on the same port of another address.
  const inodes = ownSockets();
  const own = (rows: ListeningSocket[]) =>
    rows
      .filter(({ port, inode }) => ports.has(port) && inodes.has(inode))
      .toSorted((a, b) => a.port - b.port || a.inode - b.inode);
  // /proc has a row twice, or leaves it out, when it changes between the parts in which it is read.
  const read = (rows: () => ListeningSocket[]) =>
    eventually(() => {
      const found = own(rows());
      return found.length === 300 ? found : undefined;
    });
  const slow = await read(listeningSockets);
  const table = openListenerTable();
  table.rows();
  expect(table.asksKernel).toBe(false);
  await expect.poll(() => table.asksKernel).toBe(true);
  expect(own(table.rows())).toEqual(slow);
  expect(table.asksKernel).toBe(true);
  table.close();
  expect(await read(table.rows)).toEqual(slow);
});

test('a closed listener disappears', async () => {
  const server = await listen('127.0.0.1');
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  expect(listeningSockets().some((row) => row.port === port)).toBe(false);
});

test.each([
  ['127.0.0.1', true],
  ['127.4.5.6', true],
  ['0.0.0.0', true],
  ['::', true],
  ['::1', true],
  ['::ffff:7f00:1', true],
  ['::ffff:0:0', true],
  ['10.0.0.1', false],
  ['fe80::1', false],
  ['::ffff:a00:1', false],
])('%s is reached through localhost: %s', (address, local) => expect(isLocalAddress(address)).toBe(local));

test("libc's answers match the system's", async () => {
  const libc = await loadLibc();
  const folder = mkdtempSync('/tmp/berth-libc-');
  closers.push(() => rmSync(folder, { recursive: true }));
  libc.makeFifo(`${folder}/fifo`);
  expect(statSync(`${folder}/fifo`).isFIFO()).toBe(true);
  expect(() => libc.makeFifo(`${folder}/fifo`)).toThrow('EEXIST');

  const flags = (fd: number) =>
    /flags:\t(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '';
  const CLOEXEC = 0o2000000;
  const fd = openSync(`${folder}/lock`, 'w');
  const copy = libc.duplicate(fd);
  expect(Number.parseInt(flags(copy), 8) & CLOEXEC).toBe(CLOEXEC);

  expect(libc.lock(fd)).toBe(true);
  const other = openSync(`${folder}/lock`, 'w');
  expect(libc.lock(other)).toBe(false);
  for (const one of [fd, copy]) closeSync(one);
  expect(libc.lock(other)).toBe(true);
  closeSync(other);

  const pipe = openSync(`${folder}/fifo`, constants.O_RDWR | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(8);
  expect(libc.read(pipe, buffer)).toBe(-os.constants.errno.EAGAIN);
  expect(libc.write(pipe, Buffer.from('abc'))).toBe(3);
  expect(libc.read(pipe, buffer)).toBe(3);
  expect(buffer.toString('utf8', 0, 3)).toBe('abc');
  closeSync(pipe);
});

test('a child started through libc equals one started by Node, and so does its end', async () => {
  const libc = await loadLibc();
  const spawn = libc.posixSpawn();
  const folder = mkdtempSync('/tmp/berth-libc-');
  closers.push(() => rmSync(folder, { recursive: true }));
  const out = openSync(`${folder}/out`, 'w');
  const err = openSync(`${folder}/err`, 'w');
  const run = (cmd: string, more: Partial<ProgramSpec> = {}): number =>
    spawn({ file: '/bin/sh', args: ['-c', cmd], cwd: folder, env: [], output: [out, err], ...more });
  const exitOf = (pid: number) => eventually(() => libc.reap(pid));

  const script = 'pwd; echo "$WHAT" >&2; tty; exec sleep 60';
  const sleeper = run(script, { env: [['WHAT', 'naïve\nlines']] });
  await eventually(() => readFileSync(`/proc/${sleeper}/comm`, 'latin1') === 'sleep\n');
  expect(readFileSync(`${folder}/out`, 'utf8')).toBe(`${folder}\nnot a tty\n`);
  expect(readFileSync(`${folder}/err`, 'utf8')).toBe('naïve\nlines\n');
  expect(readlinkSync(`/proc/${sleeper}/fd/0`)).toBe('/dev/null');
  expect(readFileSync(`/proc/${sleeper}/status`, 'latin1')).toMatch(/^SigBlk:\t0+\nSigIgn:\t0+$/m);
  const stat = readFileSync(`/proc/${sleeper}/stat`, 'latin1').split(' ');
  expect(stat.slice(3, 6).map(Number)).toEqual([process.pid, sleeper, sleeper]);
  expect(libc.reap(sleeper)).toBeNull();
  process.kill(sleeper, 'SIGTERM');
  expect(await exitOf(sleeper)).toEqual({ exitCode: null, signal: 'SIGTERM' });
  // The port is in use.
  expect(libc.reap(sleeper)).toEqual({ exitCode: null, signal: null });

  for (const code of [0, 1, 127, 255])
    expect(await exitOf(run(`exit ${code}`))).toEqual({ exitCode: code, signal: null });
  for (const signal of ['SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGUSR2'])
    expect(await exitOf(run(`kill -${signal.slice(3)} $$`))).toEqual({ exitCode: null, signal });
  for (const [code, wrong] of [
    ['ENOENT', { file: '/no/such/shell' }],
    ['ENOENT', { cwd: `${folder}/gone` }],
    ['EACCES', { file: `${folder}/out` }],
    ['E2BIG', { args: ['-c', 'x'.repeat(200_000)] }],
    ['EBADF', { output: [9_999, err] as const }],
  ] as const)
    expect(() => run('true', wrong)).toThrow(expect.objectContaining({ code, message: `spawn ${code}` }));
  closeSync(out);
  closeSync(err);
});

test('other users who can log in are distinguished from system users and from oneself', () => {
  const me = process.getuid?.() ?? 0;
  const folder = mkdtempSync(`${os.tmpdir()}/berth-users-`);
  closers.push(() => rmSync(folder, { recursive: true }));
  const list = `${folder}/passwd`;
  const people = [
    'ann:x:1998:1:,,,:/home/ann:/bin/sh',
    'bob:x:59999:1::/home/bob:',
    `me:x:${me}:1::/:/bin/sh`,
  ];
  const others = [
    'root:x:0:0:root:/root:/bin/bash',
    'www-data:x:33:33::/var/www:/usr/sbin/nologin',
    'eve:x:1999:1::/:/usr/sbin/nologin',
    'old:x:1997:1::/:/bin/false',
    'nobody:x:65534:65534::/:/bin/sh',
    'broken',
    '',
  ];
  writeFileSync(list, [...others, ...people].join('\n'));
  expect(otherUsers(list)).toEqual(['ann', 'bob']);
  expect(otherUsers(`${folder}/absent`)).toEqual([]);
  expect([userName(0), userName(4_000_000_000)]).toEqual(['root', '4000000000']);
});
