// The pool, with real threads.
import { cpSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { createJobPool, type JobPoolOptions } from '../../src/daemon/job_pool.ts';
import { afterThisTest } from '../kit/actors.ts';
import { bundle } from '../kit/bundle.ts';
import { eventually } from '../kit/eventually.ts';
import { codeOf } from '../kit/probe_actor.ts';

let testWorker: URL;
let realWorker: URL;
beforeAll(async () => {
  testWorker = pathToFileURL(await bundle('test/daemon/job_worker.ts'));
  realWorker = pathToFileURL(await bundle('workers/jobs.ts'));
});

function open(options: JobPoolOptions = {}, file = testWorker) {
  const jobs = createJobPool({ file, ...options });
  afterThisTest(() => jobs.close());
  return { jobs, run: (upload: string) => jobs.run('parseKubeconfig', { upload, now: 7 }) };
}

it('a job runs on another thread and returns its result, or its failure with every field', async () => {
  const { run } = open();
  expect(await run('https://a')).toMatchObject({ server: 'https://a', credential: { token: '7' } });
  await expect(run('failure')).rejects.toMatchObject({
    code: 'invalid_spec',
    message: 'as asked',
    detail: { details: [{ path: 'a', message: 'b' }] },
  });
});

it('a job that takes too long is ended at its deadline, and the next one completes', async () => {
  const { run } = open({ deadlineMs: 1500, threads: 1 });
  // A deadline counts from the call: on a busy machine a thread that is still starting may miss it.
  const done = async (job: string): Promise<void> => {
    while ((await codeOf(run(job))) === 'deadline');
  };
  await done('warm');
  expect(await codeOf(run('spin'))).toBe('deadline');
  await done('after');
  expect(await codeOf(run('again'))).toBe('none');
});

it.each(['defect', 'exit', 'memory'])(
  'a job that ends by %s fails with `crashed`, is in the log, and affects no other',
  async (how) => {
    const { run } = open({ deadlineMs: 20_000 });
    const logged = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => logged.mockRestore());
    expect(await codeOf(run(how))).toBe('crashed');
    expect(logged.mock.calls.join('\n')).toMatch(/^berth: the job \w+ crashed: /m);
    expect(await run('after')).toMatchObject({ server: 'after' });
  },
);

it('a full queue refuses jobs at once', async () => {
  const { run } = open({ threads: 1, queue: 2, deadlineMs: 20_000 });
  await run('warm');
  const codes = await Promise.all(Array.from({ length: 10 }, () => codeOf(run('job'))));
  expect(codes.filter((code) => code === 'none').length).toBeGreaterThanOrEqual(3);
  expect(codes.filter((code) => code === 'overloaded').length).toBeGreaterThanOrEqual(5);
  expect(new Set(codes)).toEqual(new Set(['none', 'overloaded']));
  expect(await codeOf(run('later'))).toBe('none');
});

it('jobs begin in the order of their calls', async () => {
  const { run } = open({ threads: 1, deadlineMs: 20_000 });
  await run('warm');
  const done: number[] = [];
  const all = Array.from({ length: 12 }, (_, at) => at);
  await Promise.all(all.map((at) => run('job').then(() => done.push(at))));
  expect(done).toEqual(all);
});

it('a job that waits behind one that takes too long fails at its own deadline, and keeps no place', async () => {
  const { run } = open({ threads: 1, deadlineMs: 1_500 });
  const codes = await Promise.all(['spin', 'job', 'job'].map((job) => codeOf(run(job))));
  expect(codes).toEqual(['deadline', 'deadline', 'deadline']);
  const done = async (): Promise<boolean> => (await codeOf(run('after'))) === 'none';
  while (!(await done()));
});

it('closing the pool ends running jobs and refuses new ones', async () => {
  const { jobs, run } = open({ deadlineMs: 20_000 });
  await run('warm');
  const spinning = codeOf(run('spin'));
  await jobs.close();
  expect(await spinning).toBe('crashed');
  expect(await codeOf(run('late'))).toBe('gone');
});

it('jobs wait for files that are missing or incomplete, and no time counts meanwhile', async () => {
  const logged = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => logged.mockRestore());
  const file = join(dirname(fileURLToPath(testWorker)), 'replaced.mjs');
  const { run } = open({ threads: 1, deadlineMs: 1_500 }, pathToFileURL(file));
  let settled = 0;
  const jobs = ['a', 'b', 'c'].map((job) => run(job).finally(() => (settled += 1)));
  const isReported = (reason: string) => logged.mock.calls.join('\n').includes(reason);
  await eventually(() => isReported('Cannot find module'));
  writeFileSync(file, '');
  await eventually(() => isReported('No handler function'));
  writeFileSync(file, 'export default {');
  await eventually(() => isReported('Unexpected end of input'));
  expect(settled).toBe(0);
  expect(isReported('crashed')).toBe(false);
  cpSync(testWorker, file);
  expect(await Promise.all(jobs)).toMatchObject(['a', 'b', 'c'].map((server) => ({ server })));
});

it('a job whose own files are missing waits for them', async () => {
  const logged = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => logged.mockRestore());
  const file = join(dirname(fileURLToPath(testWorker)), 'part.mjs');
  const { jobs } = open();
  const job = jobs.run('loadRules', { folders: [file] });
  await eventually(() => logged.mock.calls.join('\n').includes('Cannot find module'));
  writeFileSync(file, '');
  expect(await job).toEqual({ sets: [], faults: [] });
});

it('closing the pool ends jobs that wait for files', async () => {
  const logged = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => logged.mockRestore());
  const { jobs, run } = open({}, new URL('missing.mjs', testWorker));
  const waiting = codeOf(run('job'));
  await eventually(() => logged.mock.calls.length > 0);
  await jobs.close();
  expect(await waiting).toBe('gone');
});

it('the real job table reads a kubeconfig', async () => {
  const { run } = open({}, realWorker);
  expect(await codeOf(run('not: a kubeconfig'))).toBe('invalid_spec');
});
