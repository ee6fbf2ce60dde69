// `berth k8s policy`: what it asks for, and how it shows policies and what they will do.
import { expect, it } from 'vitest';
import { cloud, ID, WORKLOADS } from '../k8s_answers.ts';

const POLICY = {
  name: 'nights',
  selector: { namespaces: ['shop'] },
  idle_timeout_minutes: null,
  windows: ['weekends'],
  timezone: 'Europe/Berlin',
  awake_until: null,
  updated_at: '2026-11-20T10:00:00.000Z',
  selected: 2,
  decided: 2,
  warning: null,
};
const { id, cluster_id, namespace, name, kind } = { ...WORKLOADS[0] };
const PREVIEW = {
  ...{ name: 'nights', selected: 2, warning: null },
  workloads: [
    {
      ...{ id, cluster_id, namespace, name, kind, state: 'awake' },
      policy: {
        ...{ schedule: 'policy:nights', idle: null, idle_timeout_minutes: null, excluded_by: null },
        ...{ awake_until: null, next_switch: null, faults: ['berth/schedule: "x\u001b[31m" is no window'] },
      },
      switches: [
        { at: '2026-11-27T23:00:00.000Z', to: 'asleep' },
        { at: '2026-11-29T23:00:00.000Z', to: 'awake' },
      ],
    },
    {
      ...{ id: ID('D'), cluster_id, namespace, name: 'db', kind: 'StatefulSet', state: 'awake' },
      policy: null,
      switches: [],
    },
  ],
};
const ANSWERS: Record<string, [status: number, body: unknown]> = {
  'GET /k8s/policies': [200, [POLICY]],
  'PUT /k8s/policies/nights': [
    200,
    { ...POLICY, selected: 0, decided: 0, warning: 'it selects no workload' },
  ],
  'DELETE /k8s/policies/nights': [200, { removed: true, name: 'nights' }],
  'GET /k8s/policies/nights/preview': [200, PREVIEW],
};

it('berth k8s policy sets, lists and removes a policy', async () => {
  const { run, asked } = await cloud(ANSWERS);
  const set =
    'k8s policy set nights -n shop -l app=web --window weekends --timezone Europe/Berlin --after 30m';
  const made = await run(`${set} --except 2026-12-24..2026-12-26=awake --awake-until 2026-11-24T08:00:00Z`);
  expect(made).toMatchObject({ code: 0, stdout: 'nights decides on 0 workloads\n' });
  expect(made.stderr).toBe('warning: nights: it selects no workload\n');
  expect(JSON.parse(asked.at(-1)?.body ?? '')).toEqual({
    selector: { namespaces: ['shop'], labels: 'app=web' },
    idle_timeout_minutes: 30,
    windows: ['weekends'],
    timezone: 'Europe/Berlin',
    exceptions: [{ from: '2026-12-24', to: '2026-12-26', state: 'awake' }],
    awake_until: '2026-11-24T08:00:00Z',
  });
  const rows = (await run('k8s policy ls')).stdout.trimEnd().split('\n');
  expect(rows.map((row) => row.split(/ {2,}/))).toEqual([
    ['NAME', 'SELECTS', 'WORKLOADS', 'ASLEEP', 'UNUSED'],
    ['nights', 'namespaces shop', '2 of 2', 'weekends Europe/Berlin', '-'],
  ]);
  expect((await run('k8s policy rm nights')).stdout).toBe('nights is removed\n');
});

it('berth k8s policy previews each switch on a line of its own, and warns of faults', async () => {
  const { run } = await cloud(ANSWERS);
  const { stdout, stderr } = await run('k8s policy preview nights');
  const rows = stdout.trimEnd().split('\n');
  const day = '\\w{3} 2026-11-\\d\\d \\d\\d:\\d\\d[+-]\\d\\d:\\d\\d';
  expect(rows.map((row) => row.split(/ {2,}/))).toEqual([
    ['WORKLOAD', 'DECIDES', 'AT', 'BECOMES'],
    ['shop/deployment/web', 'policy:nights', expect.stringMatching(new RegExp(`^${day}$`)), 'asleep'],
    ['shop/deployment/web', 'policy:nights', expect.stringMatching(new RegExp(`^${day}$`)), 'awake'],
    ['shop/statefulset/db', '-', '-', '-'],
  ]);
  expect(stderr).toMatch(/^warning: shop\/deployment\/web: berth\/schedule: /);
  expect(stderr).not.toContain('\x1b');
  expect(JSON.parse((await run('k8s policy preview nights --json')).stdout)).toEqual(PREVIEW.workloads);
});

it('berth k8s policy refuses an unknown action, an unknown policy and an invalid exception', async () => {
  const { run, asked } = await cloud(ANSWERS);
  for (const line of [
    'k8s policy drop nights',
    'k8s policy set',
    'k8s policy set nights -n shop --after 90s',
    'k8s policy set nights -n shop --except 2026-12-24=maybe',
  ])
    expect(await run(line)).toMatchObject({ code: 2, stdout: '' });
  expect(asked).toEqual([]);
});
