import { describe, expect, it } from 'vitest';
import { type ExplanationFacts, explainService, startFailure } from '../../../src/actors/service/explain.ts';
import { humanDuration } from '../../../src/actors/service/explain_sentences.ts';
import type { LiveRun } from '../../../src/actors/service/run.ts';
import type { In, LifecycleState } from '../../../src/actors/service/state.ts';
import type { LastEnd, ServiceStatus } from '../../../src/protocol/service.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { MEMO } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

const EVERY_HOUR = { cron: '@hourly', timezone: null, catchUp: false };
const NOW = 1_000_000;
const RUN: LiveRun = {
  id: 'r1',
  metadata: { ...MEMO, ready: 'http://localhost:3000/health', deadline: NOW + 12_300 },
  pty: false,
  by: 'client',
  askedAt: null,
  logFrom: 0,
  timeoutMs: 30_000,
  spawned: deferred(),
  ready: deferred(),
  pid: 41,
  startTicks: 1,
  startedAt: NOW - 3_400,
  rssMB: 1,
};
const END: LastEnd = {
  run: 'r1',
  status: 'crashed',
  exitCode: 3,
  signal: null,
  exitUnknown: false,
  at: NOW - 2_000,
};
const CHECK = {
  url: 'http://localhost:3000/health',
  at: NOW - 15,
  status: 500,
  error: 'it answered 500; 2xx or 3xx is needed',
};
const check = { last: () => CHECK, foreignHolder: () => null, leftMs: () => 12_300, stop: () => {} };
const BACKOFF = { attempt: 4, delayMs: 800, nextAt: NOW + 640 };

function about(
  state: LifecycleState,
  over: Partial<ExplanationFacts> & { status: ServiceStatus },
): ReturnType<typeof explainService> {
  const facts: ExplanationFacts = {
    spec: spec(),
    state,
    end: null,
    portHolder: null,
    foreignHolder: null,
    doorPortHolder: null,
    failedWake: null,
    isDoorOpen: false,
    startFollows: false,
    watching: null,
    lastLines: [],
    path: null,
    droppedBytes: 0,
    now: NOW,
    ...over,
  };
  return explainService(facts);
}

describe('an explanation', () => {
  it('says that a connection starts a service behind a door', () => {
    const idle: LifecycleState = { phase: 'idle', trouble: null };
    const next = 'The next connection to port 3000 starts it.';
    const door = { spec: spec({ port: 3000 }), end: END, isDoorOpen: true };
    expect(about(idle, { status: 'sleeping', ...door })).toMatchObject({
      reason: 'It was put to sleep.',
      next,
    });
    expect(about(idle, { status: 'crashed', ...door })).toMatchObject({
      reason: 'Its last process ended with exit code 3. Its restart policy is "no".',
      next,
    });
  });

  it('says why a service behind a door could not be woken', () => {
    const idle: LifecycleState = { phase: 'idle', trouble: null };
    const failedWake = { reason: 'db is needed', at: NOW - 1_500 };
    const door = { spec: spec({ port: 3000 }), end: END, isDoorOpen: true, failedWake };
    const words = 'It could not be woken for a connection 1.5 s ago: db is needed.';
    for (const status of ['sleeping', 'crashed'] as const)
      expect(about(idle, { status, ...door }).reason.endsWith(` ${words}`)).toBe(true);
  });

  it('of a service whose door does not open names the process that has its port', () => {
    const held = { portHolder: 'pid 7 (node)', doorPortHolder: 'pid 7 (node)' };
    const idle: LifecycleState = { phase: 'idle', trouble: null };
    expect(about(idle, { status: 'sleeping', spec: spec({ port: 3000 }), end: END, ...held })).toMatchObject({
      reason: 'It was put to sleep. Port 3000 is held by pid 7 (node).',
      next: 'Stop what holds the port or register another port; a start is refused until then.',
    });
    const run = { ...RUN, metadata: { ...RUN.metadata, port: 4000, doorPort: 3000 } };
    const words = 'On its port 3000 listens pid 7 (node) instead of Berth, so clients do not reach it there.';
    const running = about({ phase: 'running', run, live: null }, { status: 'running', ...held });
    expect(running).toMatchObject({
      reason: `Its process 41 has been up for 3.4 s. ${words}`,
      portHolder: 'pid 7 (node)',
    });
    const checking = about({ phase: 'checking', run, check }, { status: 'starting', ...held });
    expect(checking.reason.endsWith(`2xx or 3xx is needed. ${words}`)).toBe(true);
    expect(checking.waitingFor).toBe('a 2xx or 3xx answer from http://localhost:3000/health');
  });

  it.each([
    ['a task', null, 'It runs when it is started; `berth up` runs it once for what it is made of.'],
    ['a scheduled task', EVERY_HOUR, 'It runs by its schedule, and when it is started.'],
  ])('says what %s runs by', (_, schedule, next) => {
    const task = spec({ kind: 'task', schedule });
    expect(about({ phase: 'idle', trouble: null }, { status: 'stopped', spec: task }).next).toBe(next);
  });

  it('says how much of the output was lost', () => {
    const lossy = about({ phase: 'idle', trouble: null }, { status: 'stopped', droppedBytes: 12_345 });
    expect(lossy.reason).toBe(
      'It has not been started yet. Of its output 12,345 bytes are lost: the disk was full.',
    );
  });

  it('of a service that was never started', () => {
    expect(about({ phase: 'idle', trouble: null }, { status: 'stopped' })).toEqual({
      status: 'stopped',
      reason: 'It has not been started yet.',
      waitingFor: null,
      lastCheck: null,
      portHolder: null,
      backoff: null,
      exit: null,
      watching: null,
      lastLines: [],
      next: 'It stays as it is until it is started.',
    });
  });

  it('of a crash', () => {
    const lastLines = ['Error: no database'];
    const explanation = about({ phase: 'idle', trouble: null }, { status: 'crashed', end: END, lastLines });
    expect(explanation).toMatchObject({
      reason: 'Its last process ended with exit code 3. Its restart policy is "no".',
      exit: { exitCode: 3, signal: null, at: NOW - 2_000 },
      lastLines,
    });
  });

  it.each([
    [{ exitCode: 127 }, 'ended with exit code 127 (the shell did not find the command)'],
    [
      { exitCode: null, signal: 'SIGKILL' },
      'was ended by SIGKILL. If nobody killed it, the system was short of memory',
    ],
    [{ exitCode: null, exitUnknown: true }, 'ended while nothing watched it'],
    [{ exitCode: null }, 'ended with the machine'],
  ])('names the kind of end: %o', (over, words) => {
    const explanation = about(
      { phase: 'idle', trouble: null },
      { status: 'crashed', end: { ...END, ...over } },
    );
    expect(explanation.reason).toContain(words);
  });

  it('names the holder of the port of a stopped service', () => {
    const explanation = about(
      { phase: 'idle', trouble: null },
      { status: 'stopped', portHolder: 'pid 9 (node)' },
    );
    expect(explanation).toMatchObject({
      reason: 'It has not been started yet. Port 3000 is held by pid 9 (node).',
      portHolder: 'pid 9 (node)',
      next: expect.stringContaining('Stop what holds the port'),
    });
  });

  it('of a start that created no process', () => {
    const explanation = about({ phase: 'idle', trouble: 'no such directory' }, { status: 'stopped' });
    expect(explanation.reason).toBe('The last start made no process: no such directory.');
  });

  it('of a service that waits for a restart', () => {
    const state: LifecycleState = { phase: 'waiting', backoff: BACKOFF, trouble: null };
    const explanation = about(state, { status: 'crashed', end: END, spec: spec({ restart: 'always' }) });
    expect(explanation).toMatchObject({
      reason: 'Its last process ended with exit code 3. Its restart policy is "always".',
      waitingFor: 'restart number 4 in a row, in 640 ms',
      backoff: BACKOFF,
    });
  });

  it('of a service that runs again after a crash', () => {
    const end: LastEnd = { ...END, exitCode: null, signal: 'SIGTERM', cause: 'memory' };
    const before = 'The process before it was ended because it used more memory than its limit, 2.0 s ago.';
    const running = { phase: 'running', run: RUN, live: null } as const;
    expect(about(running, { status: 'running', end }).reason).toBe(
      `Its process 41 has been up for 3.4 s. ${before}`,
    );
    expect(about({ phase: 'checking', run: RUN, check }, { status: 'starting', end }).reason).toContain(
      before,
    );
    const stopped: LastEnd = { ...END, status: 'stopped' };
    expect(about(running, { status: 'running', end: stopped }).reason).not.toContain('before');
  });

  it('of a service that is not ready: the probe, its result, and the next step', () => {
    const explanation = about(
      { phase: 'checking', run: RUN, check },
      { status: 'starting', portHolder: 'web' },
    );
    expect(explanation).toMatchObject({
      reason:
        'Its process 41 has been up for 3.4 s and has not passed its ready-check yet. ' +
        'The last check of http://localhost:3000/health, 15 ms ago: it answered 500; 2xx or 3xx is needed. ' +
        'On port 3000 listens web.',
      waitingFor: 'a 2xx or 3xx answer from http://localhost:3000/health',
      lastCheck: CHECK,
      next: 'It is stopped in 12.3 s if the check has not passed by then.',
    });
  });

  it('of a service whose port is in use names the other program before anything else about the port', () => {
    const held = { portHolder: 'user eve', foreignHolder: 'user eve' };
    const words = 'On its port 3000, user eve listens too: what is sent to localhost:3000 may end there.';
    const checking = about({ phase: 'checking', run: RUN, check }, { status: 'starting', ...held });
    expect(checking.reason.endsWith(`2xx or 3xx is needed. ${words}`)).toBe(true);
    expect(checking).toMatchObject({ waitingFor: 'user eve to leave port 3000', portHolder: 'user eve' });
    const running = about({ phase: 'running', run: RUN, live: null }, { status: 'running', ...held });
    expect(running.reason).toBe(`Its process 41 has been up for 3.4 s. ${words}`);
  });

  it.each([
    ['http://localhost:9/', 'The ready URL asks port 9, while the service was given port 3000.'],
    ['http://localhost/health', 'The ready URL asks port 80, while the service was given port 3000.'],
    ['https://localhost/', 'The ready URL asks port 443, while the service was given port 3000.'],
    ['tcp://localhost:3000', 'Nothing listens on port 3000: does the program take its port from $PORT?'],
  ])('recognises what is wrong with a check of %s', (ready, words) => {
    const run = { ...RUN, metadata: { ...RUN.metadata, ready } };
    const endless = { ...check, leftMs: () => null };
    const explanation = about({ phase: 'checking', run, check: endless }, { status: 'starting' });
    expect(explanation.reason).toContain(words);
    expect(explanation.next).toContain('It has no deadline');
  });

  it.each([
    ['3000', 'Nothing listens on port 3000: does the program take its port from $PORT?'],
    ['${port.web}', 'Nothing listens on port 3000: does the program take its port from $PORT?'],
    ['4000', 'Nothing listens on port 3000: its env sets $PORT to another port.'],
  ])('says that PORT=%s in the variables of a service is another port', (value, words) => {
    const own = { spec: spec({ env: [['PORT', value]] }) };
    expect(about({ phase: 'checking', run: RUN, check }, { status: 'starting', ...own }).reason).toContain(
      words,
    );
  });

  it.each([
    [{ phase: 'running', run: RUN, live: null }, 'running', 'Its process 41 has been up for 3.4 s.'],
    [{ phase: 'launching', run: RUN, early: null }, 'starting', 'Its process is being made.'],
    [
      { phase: 'stopping', run: RUN, graceMs: 5_000, late: null, fault: null, stop: deferred() },
      'stopping',
      'It was asked to stop.',
    ],
    [{ phase: 'lost', was: null }, 'stopped', 'The process host, which owns all processes'],
  ] as [LifecycleState, ServiceStatus, string][])('of every other phase: %o', (state, status, words) => {
    expect(about(state, { status }).reason).toContain(words);
  });

  it('contains durations in a readable form', () => {
    expect([0, 340, 3_400, 59_949, 125_000].map(humanDuration)).toEqual([
      '0 ms',
      '340 ms',
      '3.4 s',
      '59.9 s',
      '2 min 5 s',
    ]);
  });
});

describe('the hint of a failed start', () => {
  const ended = (over: Partial<In<'ended'>>): In<'ended'> => ({
    phase: 'ended',
    run: RUN,
    end: END,
    how: { stopped: false, late: null, fault: null, stop: null },
    backoff: null,
    recording: null,
    ...over,
  });
  const failure = (
    state: In<'ended'>,
    lines: string[] = [],
    env: [string, string][] = [],
  ): Promise<unknown> =>
    startFailure('web', state, { env, lastLines: lines, path: '/opt/venv/bin', now: NOW });

  it('names the PATH of a program that was not found', async () => {
    const end = { ...END, exitCode: 127, signal: null };
    expect(await failure(ended({ end }))).toMatchObject({
      detail: { hint: expect.stringContaining('It was looked up in PATH=/opt/venv/bin.') },
    });
  });

  it('names the holder of the port of the service', async () => {
    const late = { check: CHECK, holder: Promise.resolve('user eve'), foreignHolder: 'user eve' };
    expect(await failure(ended({ how: { stopped: true, late, fault: null, stop: null } }))).toMatchObject({
      code: 'ready_timeout',
      message: 'web was not ready within 30000 ms and has been stopped: user eve listens on its port 3000',
    });
  });

  it('says that the variables of the service override its port', async () => {
    const late = { check: CHECK, holder: Promise.resolve(null), foreignHolder: null };
    const timedOut = ended({ how: { stopped: true, late, fault: null, stop: null } });
    expect(await failure(timedOut, [], [['PORT', '4000']])).toMatchObject({
      detail: { hint: expect.stringContaining('port 3000: its env sets $PORT to another port.') },
    });
  });

  it('carries the facts of a timeout and the last lines', async () => {
    const late = { check: CHECK, holder: Promise.resolve(null), foreignHolder: null };
    expect(
      await failure(ended({ how: { stopped: true, late, fault: null, stop: null } }), ['one', 'two']),
    ).toMatchObject({
      code: 'ready_timeout',
      message: 'web was not ready within 30000 ms and has been stopped',
      detail: {
        hint:
          'The last check of http://localhost:3000/health, 15 ms ago: it answered 500; 2xx or 3xx is needed. ' +
          'Nothing listens on port 3000: does the program take its port from $PORT? Its last lines:\none\ntwo',
      },
    });
  });

  it('says that a restart follows', async () => {
    expect(await failure(ended({ backoff: BACKOFF }))).toMatchObject({
      code: 'start_failed',
      message: 'web ended with exit code 3 before it was ready',
      detail: { hint: 'It is started again in 640 ms by its restart policy. Its log is empty.' },
    });
  });
});
