// `berth k8s events` and `berth k8s history`: what they ask for, and how they show times and nothing.
import { expect, it } from 'vitest';
import { cloud, ID } from '../k8s_answers.ts';

const EVENT = {
  id: 7,
  at: '2026-01-02T03:04:05.000Z',
  type: 'workload.conflict',
  who: 'berth',
  from: null,
  action: null,
  operation_id: null,
  result: 'workload_conflict',
  cluster_id: ID('A'),
  cluster: 'dev',
  namespace: 'shop',
  kind: 'Deployment',
  workload: 'web',
  workload_id: ID('B'),
  tether_id: null,
  reason: 'scaled by \u001b[31msomebody',
};
const DONE = {
  ...EVENT,
  ...{
    id: 8,
    type: 'operation.done',
    who: 'token',
    from: '127.0.0.1',
    action: 'sleepWorkload',
    result: 'ok',
  },
  reason: null,
};
const TYPES = 'types=operation.done%2Coperation.failed%2Coperation.interrupted';
const withEvents = (events: unknown[]) =>
  cloud(
    Object.fromEntries(
      [
        'limit=1',
        'limit=100',
        `${TYPES}&limit=100`,
        'types=workload.conflict%2Coperation.done&since=1d&limit=5',
      ].map((query) => [`GET /k8s/events/history?${query}`, [200, events]]),
    ),
  );

it('berth k8s events shows events with their day, on one line each, or that there are none', async () => {
  const { run } = await withEvents([DONE, EVENT]);
  const shown = (await run('k8s events --since 1d --limit 5 --type conflict,done')).stdout.split('\n');
  const time = '2026-01-0[123] \\d\\d:\\d\\d:05';
  expect(shown).toEqual([
    expect.stringMatching(
      new RegExp(
        `^${time} {2}workload\\.conflict +dev/shop/web {2}\\(workload_conflict\\) {2}scaled by .*somebody$`,
      ),
    ),
    expect.stringMatching(
      new RegExp(`^${time} {2}operation\\.done +dev/shop/web {2}sleepWorkload by token$`),
    ),
    '',
  ]);
  expect(shown.join('')).not.toContain('\x1b');
  const nothing = await withEvents([]);
  for (const line of ['k8s events', 'k8s history'])
    expect(await nothing.run(line)).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing of this has happened.\n',
    });
  expect(await nothing.run('k8s events --json')).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

it('berth k8s history shows who requested what', async () => {
  const { run } = await withEvents([DONE]);
  const rows = (await run('k8s history')).stdout.trimEnd().split('\n');
  expect(rows.map((row) => row.split(/ {2,}/))).toEqual([
    ['TIME', 'WHO', 'ACTION', 'TARGET', 'RESULT', 'REASON'],
    [
      expect.stringMatching(/^2026-01-0[123] \d\d:\d\d:05$/),
      'token',
      'sleepWorkload',
      'dev/shop/web',
      'ok',
      '-',
    ],
  ]);
  expect(JSON.parse((await run('k8s history --json')).stdout)).toEqual([DONE]);
});
