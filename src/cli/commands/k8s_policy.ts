// berth k8s policy ls, set, rm, preview
import type { Client } from '../../client/create_client.ts';
import type { Policy, PolicyBody, PolicyPreview } from '../../client/records.ts';
import { countText } from '../../presentation/format.ts';
import { policySelects, policyWindows, whoDecides } from '../../presentation/policy_text.ts';
import { localTime } from '../../protocol/timestamps.ts';
import {
  actionIn,
  defineCommand,
  durationOption,
  listOption,
  repeatedOption,
  textOption,
} from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';

const ACTIONS = ['ls', 'set', 'rm', 'preview'] as const;
const MINUTE_MS = 60_000;

const COLUMNS: readonly Column<Policy>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'SELECTS', cell: policySelects, canShrink: true },
  {
    title: 'WORKLOADS',
    cell: ({ decided, selected }) => `${decided} of ${selected}`,
    style: ({ warning }) => (warning === null ? 'green' : 'yellow'),
  },
  { title: 'ASLEEP', cell: policyWindows, canShrink: true },
  {
    title: 'UNUSED',
    cell: ({ idle_timeout_minutes: minutes }) => (minutes === null ? null : `${minutes}m`),
  },
];

type PreviewedWorkload = PolicyPreview['workloads'][number];

interface SwitchRow {
  workload: PreviewedWorkload;
  /** null: the policy never switches it. */
  next: PreviewedWorkload['switches'][number] | null;
}

const weekday = new Intl.DateTimeFormat('en', { weekday: 'short' });

/** Formats a time as `Mon 2026-11-23 20:00+01:00`, in the time zone of this machine. */
function switchTime(at: number): string {
  const [day = '', time = ''] = localTime(at).split('T');
  return `${weekday.format(at)} ${day} ${time.slice(0, 5)}${time.slice(-6)}`;
}

const workloadName = ({ namespace, kind, name }: PreviewedWorkload): string =>
  `${namespace}/${kind.toLowerCase()}/${name}`;

const PREVIEW_COLUMNS: readonly Column<SwitchRow>[] = [
  { title: 'WORKLOAD', cell: ({ workload }) => workloadName(workload) },
  {
    title: 'DECIDES',
    cell: ({ workload }) => whoDecides(workload) || null,
  },
  { title: 'AT', cell: ({ next }) => next && switchTime(Date.parse(next.at)) },
  { title: 'BECOMES', cell: ({ next }) => next?.to ?? null },
];

interface Given {
  cluster: string[];
  namespace: string[];
  selector: string | undefined;
  window: string[];
  timezone: string | undefined;
  except: string[];
  after: number | undefined;
  awakeUntil: string | undefined;
}

/** Parses an exception such as `2026-12-24..2026-12-26=asleep`; the state may be absent. */
function exceptionOf(text: string) {
  const [, from = '', to, state = 'asleep'] = /^([^.=]+)(?:\.\.([^=]+))?(?:=(.+))?$/.exec(text) ?? [];
  if (from === '' || (state !== 'asleep' && state !== 'awake'))
    throw new UsageError(`${text} is no exception`, 'Say 2026-12-24, or 2026-12-24..2026-12-26=awake.');
  return { from, ...(to === undefined ? {} : { to }), state } as const;
}

async function bodyOf(client: Client, given: Given): Promise<PolicyBody> {
  const { namespace, selector, window, timezone, after, awakeUntil } = given;
  if (after !== undefined && (after < MINUTE_MS || after % MINUTE_MS !== 0))
    throw new UsageError('--after must be whole minutes, such as 30m');
  const clusters = await Promise.all(given.cluster.map((one) => findCluster(client, one)));
  return {
    selector: {
      ...(clusters.length > 0 && { cluster_ids: clusters.map(({ id }) => id) }),
      ...(namespace.length > 0 && { namespaces: namespace }),
      ...(selector !== undefined && { labels: selector }),
    },
    ...(after !== undefined && { idle_timeout_minutes: after / MINUTE_MS }),
    ...(window.length > 0 && { windows: window }),
    timezone: timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    ...(given.except.length > 0 && { exceptions: given.except.map(exceptionOf) }),
    ...(awakeUntil !== undefined && { awake_until: awakeUntil }),
  };
}

function printPolicy({ out }: CommandContext, policy: Policy): void {
  if (policy.warning !== null) out.warn(`${policy.name}: ${policy.warning}`);
  out.record(policy, () => `${policy.name} decides on ${countText(policy.decided, 'workload')}`);
}

function printPreview({ out }: CommandContext, name: string, { warning, workloads }: PolicyPreview): void {
  if (warning !== null) out.warn(`${name}: ${warning}`);
  if (out.isData) {
    out.rows(workloads, [], '');
    return;
  }
  for (const workload of workloads)
    for (const fault of workload.policy?.faults ?? []) out.warn(`${workloadName(workload)}: ${fault}`);
  const rows = workloads.flatMap((workload): SwitchRow[] => {
    const { switches } = workload;
    return switches.length === 0 ? [{ workload, next: null }] : switches.map((next) => ({ workload, next }));
  });
  out.rows(rows, PREVIEW_COLUMNS, 'It selects no workload.');
}

export const policyCommand = defineCommand({
  about:
    'Policies say when workloads sleep by themselves: in windows of the week, and when unused. `set` makes ' +
    'or replaces one, `preview` prints the next ten switches of each workload, `ls` lists them, `rm` removes ' +
    'one and wakes what its windows have put to sleep. Annotations of workloads and namespaces win.',
  args: [
    { syntax: '<action>', about: ACTIONS.join(', '), completes: ACTIONS },
    { syntax: '[name]', about: 'of the policy' },
  ],
  options: {
    cluster: listOption('--cluster <clusters>', 'set: workloads of these clusters', 'cluster'),
    namespace: listOption('-n, --namespace <names>', 'set: workloads of these namespaces'),
    selector: textOption(
      '-l, --selector <selector>',
      'set: workloads with these labels, as app=web,tier!=db',
    ),
    window: repeatedOption('--window <window>', 'set: asleep then, as "Mon-Fri 20:00-07:00" or weekends'),
    timezone: textOption(
      '--timezone <zone>',
      'set: of windows and exceptions; default: that of this machine',
    ),
    except: repeatedOption(
      '--except <days>',
      'set: days without windows, as 2026-12-24..2026-12-26=asleep or 2026-12-31=awake',
    ),
    after: durationOption('--after <time>', 'set: asleep when unused for so long, in whole minutes'),
    awakeUntil: textOption('--awake-until <time>', 'set: until then it puts nothing to sleep (RFC 3339)'),
  },
  examples: [
    [
      'berth k8s policy set nights -n shop,web --window "Mon-Fri 20:00-07:00" --window weekends',
      'asleep at night and on weekends',
    ],
    ['berth k8s policy preview nights', 'what it will do'],
  ],
  run: async (context, [word, name], given) => {
    const action = actionIn(ACTIONS, word);
    const client = await context.client();
    if (action === 'ls') {
      const all = await client.cloud.policies();
      context.out.rows(all, COLUMNS, 'There are no policies. `berth k8s policy set` makes one.');
      return;
    }
    if (name === undefined) throw new UsageError(`name the policy: berth k8s policy ${action} <name>`);
    if (action === 'set')
      printPolicy(context, await client.cloud.setPolicy(name, await bodyOf(client, given)));
    else if (action === 'rm')
      context.out.record(await client.cloud.removePolicy(name), () => `${name} is removed`);
    else printPreview(context, name, await client.cloud.previewPolicy(name));
  },
});
