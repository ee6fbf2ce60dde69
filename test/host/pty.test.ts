import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  connectDaemon,
  type Daemon,
  descriptorsOf,
  eventually,
  hasOnlyItsOwn,
  isRunning,
  newState,
  useHost,
} from '../kit/process_host.ts';

useHost();

const pty = { cols: 120, rows: 32 };
const type = (daemon: Daemon, { service, run }: { service: string; run: string }, text: string) =>
  daemon.host.tell('write', { service, run, data: Buffer.from(text) });

test('an agent has a terminal of its size, which can be changed', async () => {
  const daemon = await connectDaemon(newState());
  const agent = await daemon.spawn(
    'agent',
    'tty; stty size; read line; stty size; echo "got $line"; exit 5',
    {
      pty,
      env: [['TERM', 'xterm-256color']],
    },
  );
  await eventually(() => daemon.tail('agent').length >= 2);
  expect(daemon.tail('agent')[0]).toMatch(/^\/dev\/pts\/\d+$/);
  expect(daemon.tail('agent')[1]).toBe('32 120');
  daemon.host.tell('resize', { service: 'agent', run: agent.run, cols: 90, rows: 20 });
  type(daemon, agent, 'hello\n');
  expect(await daemon.ended(agent)).toMatchObject({ exitCode: 5, signal: null, exitUnknown: false });
  expect(daemon.tail('agent').slice(2)).toEqual(['hello', '20 90', 'got hello']);
  // Messages to a closed terminal do nothing.
  type(daemon, agent, 'x');
  daemon.host.tell('resize', { service: 'agent', run: agent.run, cols: 90, rows: 20 });
  expect(await daemon.host.ask('dropped', {})).toEqual({ rows: [] });
});

test('a program that prints and ends at once loses nothing, in 200 of 200 runs', async () => {
  const daemon = await connectDaemon(newState());
  // More than a terminal buffers: its end is still unread when the program has ended.
  const text = (index: number) =>
    Array.from({ length: 1_000 + 20 * index }, (_, line) => `${line + 1}\r\n`).join('');
  const lost: number[] = [];
  // A few at a time, so that they disturb each other.
  const worker = async (first: number) => {
    for (let index = first; index < 200; index += 5) {
      const name = `a${index}`;
      const agent = await daemon.spawn(name, `seq 1 ${1_000 + 20 * index}`, { pty });
      expect(await daemon.ended(agent)).toMatchObject({ exitCode: 0 });
      if (daemon.whole(name).toString() !== text(index)) lost.push(index);
    }
  };
  await Promise.all([0, 1, 2, 3, 4].map(worker));
  expect(lost).toEqual([]);
});

test('large output is complete, and nobody has to read it', async () => {
  const daemon = await connectDaemon(newState());
  const agent = await daemon.spawn('agent', 'seq 1 200000', { pty });
  await daemon.ended(agent);
  const expected = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\r\n`).join('');
  expect(daemon.whole('agent').toString() === expected).toBe(true);
});

test('no agent or service has a descriptor of another one', async () => {
  const daemon = await connectDaemon(newState());
  const names = Array.from({ length: 20 }, (_, index) => index);
  const agents = await Promise.all(names.map((index) => daemon.spawn(`a${index}`, 'exec sleep 60', { pty })));
  const services = await Promise.all(names.map((index) => daemon.spawn(`s${index}`, 'exec sleep 60')));
  for (const { pid } of [...agents, ...services]) {
    await hasOnlyItsOwn(pid);
  }
  const terminals = agents.map(({ pid }) => {
    const ends = descriptorsOf(pid).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(new Set(ends).size).toBe(1);
    return ends[0];
  });
  expect(new Set(terminals).size).toBe(20);
});

test('a shell that ignores SIGTERM ends by the hang-up that follows, with its background jobs', async () => {
  const daemon = await connectDaemon(newState());
  const agent = await daemon.spawn('agent', 'exec bash --norc -i', { pty, env: [['PS1', 'ready> ']] });
  await eventually(() => daemon.whole('agent').includes('ready> '));
  type(daemon, agent, 'sleep 61 & sleep 62 &\njobs -p\n');
  const jobs = await eventually(() => {
    const pids = daemon
      .tail('agent', 20)
      .filter((line) => /^\d+$/.test(line))
      .map(Number);
    return pids.length === 2 && pids;
  });
  const report = await daemon.stop(agent, { graceMs: 20_000 });
  expect(report).toMatchObject({ escalated: false, left: [], reaped: 3 });
  for (const pid of [agent.pid, ...jobs]) expect(isRunning(pid)).toBe(false);
});

test('a program that ends in order at SIGTERM gets no hang-up', async () => {
  const daemon = await connectDaemon(newState());
  const cmd = `trap 'sleep 0.3; echo bye; exit 4' TERM; echo ready; while :; do sleep 0.02; done`;
  const agent = await daemon.spawn('agent', cmd, { pty });
  await eventually(() => daemon.tail('agent').includes('ready'));
  expect(await daemon.stop(agent, { graceMs: 20_000 })).toMatchObject({
    exitCode: 4,
    signal: null,
    escalated: false,
  });
  expect(daemon.tail('agent').at(-1)).toBe('bye');
});

test('a process that survives the signal is hung up after half the grace period, then killed', async () => {
  const daemon = await connectDaemon(newState());
  const stubborn = (trap: string) => `trap ${trap}; echo ready; while :; do sleep 0.02; done`;
  const late = await daemon.spawn('late', stubborn(': TERM'), { pty });
  const never = await daemon.spawn('never', stubborn(`'' TERM HUP`), { pty });
  await eventually(() => daemon.tail('late').includes('ready') && daemon.tail('never').includes('ready'));
  const [hungUp, killed] = await Promise.all([
    daemon.stop(late, { graceMs: 2_000 }),
    daemon.stop(never, { graceMs: 300 }),
  ]);
  expect(hungUp).toMatchObject({ signal: 'SIGHUP', escalated: false, left: [] });
  expect(hungUp.ms).toBeGreaterThanOrEqual(1_000);
  expect(killed).toMatchObject({ signal: 'SIGKILL', escalated: true, left: [] });
});

test('input is taken as fast as the program reads it, and unread input blocks nobody', async () => {
  const daemon = await connectDaemon(newState());
  const deaf = await daemon.spawn('deaf', 'stty raw -echo; echo ready; exec sleep 60', { pty });
  const reader = await daemon.spawn('reader', 'stty raw -echo; echo ready; head -c 300000 | cksum', { pty });
  await eventually(() => daemon.tail('deaf').length > 0 && daemon.tail('reader').length > 0);
  const chunk = 'y'.repeat(10_000);
  for (let index = 0; index < 200; index += 1) type(daemon, deaf, chunk);
  for (let index = 0; index < 30; index += 1) type(daemon, reader, chunk);
  await daemon.ended(reader);
  // cksum of 300,000 times "y".
  const sum = execFileSync('sh', ['-c', 'head -c 300000 /dev/zero | tr "\\0" y | cksum'], {
    encoding: 'utf8',
  }).trim();
  expect(daemon.whole('reader').toString()).toContain(sum);
  expect(await daemon.stop(deaf)).toMatchObject({ escalated: false });
});

test('a terminal is closed with its process', async () => {
  const daemon = await connectDaemon(newState());
  const { hostPid } = daemon.connection;
  const terminals = () =>
    readdirSync(`/proc/${hostPid}/fd`).filter((fd) =>
      readlinkSync(`/proc/${hostPid}/fd/${fd}`).startsWith('/dev/pt'),
    ).length;
  for (let index = 0; index < 5; index += 1) await daemon.ended(await daemon.spawn('agent', 'true', { pty }));
  await eventually(() => terminals() === 0);
  const agent = await daemon.spawn('agent', '(trap "" HUP; sleep 60) & exit 3', { pty });
  expect(await daemon.ended(agent)).toMatchObject({ exitCode: 3 });
  await eventually(() => terminals() === 0);
});

test('input is answered when the terminal has taken it, or with false when it is gone', async () => {
  const daemon = await connectDaemon(newState());
  const deaf = await daemon.spawn('deaf', 'stty raw -echo; echo ready; exec sleep 60', { pty });
  await eventually(() => daemon.tail('deaf').length > 0);
  const write = (data: Buffer) => daemon.host.ask('write', { service: 'deaf', run: deaf.run, data });
  expect(await write(Buffer.from('x'))).toBe(true);
  let isAnswered = false;
  const much = write(Buffer.alloc(500_000)).finally(() => {
    isAnswered = true;
  });
  // Anything else is answered meanwhile.
  for (let count = 0; count < 20; count += 1) await daemon.host.ask('runOf', { service: 'deaf' });
  expect(isAnswered).toBe(false);
  await daemon.stop(deaf);
  expect(await much).toBe(false);
  expect(await write(Buffer.from('x'))).toBe(false);
});
