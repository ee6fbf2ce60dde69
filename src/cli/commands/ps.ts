// berth ps
import type { Service } from '../../client/records.ts';
import { cpuText } from '../../presentation/format.ts';
import { shownAddress } from '../../protocol/port_protocol.ts';
import { SERVICE_STATUSES } from '../../protocol/service.ts';
import { shortName } from '../../protocol/stacks.ts';
import { choiceOption, defineCommand, flagOption, textOption } from '../kit/command.ts';
import { describeStatus, formatElapsed, formatServiceMemory, lastEnd, statusStyle } from '../kit/format.ts';
import type { Column } from '../kit/output.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope } from '../kit/stack_scope.ts';

/** The name of the group in its project file; null for the group of the whole stack. */
function groupInStack({ group, stack }: Service): string | null {
  if (group === null || stack === null) return group;
  return group === stack ? null : (shortName(group, stack) ?? group);
}

const columnsOf = ({ label }: StackScope, isAll: boolean): readonly Column<Service>[] => [
  { title: 'NAME', cell: ({ name }) => label(name), canShrink: true, keepsEnd: true },
  { title: 'STACK', cell: ({ stack }) => stack, canShrink: true, keepsEnd: true, wideOnly: !isAll },
  { title: 'STATUS', cell: describeStatus, style: statusStyle },
  { title: 'GROUP', cell: groupInStack, canShrink: true },
  { title: 'PID', cell: ({ pid }) => pid, alignRight: true },
  { title: 'CPU', cell: ({ cpu }) => cpuText(cpu), alignRight: true },
  { title: 'MEMORY', cell: formatServiceMemory, alignRight: true },
  { title: 'UP', cell: ({ startedAt }) => formatElapsed(startedAt), alignRight: true },
  { title: 'RESTARTS', cell: ({ restarts }) => restarts, alignRight: true, wideOnly: true },
  { title: 'LAST END', cell: (service) => (service.pid ? '' : lastEnd(service)), wideOnly: true },
  { title: 'STARTED', cell: ({ startedAt }) => startedAt, wideOnly: true },
  { title: 'URL', cell: shownAddress },
];

export const psCommand = defineCommand({
  about:
    'Lists the services of the stack that this folder is of, whatever their state; elsewhere, and with -A, ' +
    'every registered one.',
  args: [{ syntax: '[names...]', about: 'the services; default: all', completes: 'service' }],
  options: {
    status: choiceOption('--status <status>', 'only services with this status', SERVICE_STATUSES),
    group: textOption('--group <name>', 'only services of this group', 'group'),
    everyState: flagOption('-a', 'accepted and ignored: every state is listed anyway'),
    quiet: flagOption('-q, --quiet', 'print only names'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth ps --status crashed', 'the services that crashed'],
    ['berth ps --json | jq -r ".[].url"', 'the URL of each service'],
  ],
  run: async (context, given, { status, group, quiet, everyState: _, ...choice }) => {
    const client = await context.client();
    const scope = await stackScope(client, choice);
    const names = given.map(scope.full);
    const all = await client.services();
    const shown = all.filter(
      (service) =>
        (names.length === 0 ? scope.has(service) : names.includes(service.name)) &&
        (status === undefined || service.status === status) &&
        (group === undefined || service.group === scope.group(group)),
    );
    const missing = names.filter((name) => !all.some((service) => service.name === name));
    for (const name of missing) context.out.warn(`there is no service ${name}`);
    if (quiet && !context.out.isData) {
      for (const { name } of shown) context.out.line(scope.label(name));
      return undefined;
    }
    const empty =
      all.length === 0
        ? 'No service is registered. `berth up` starts those of a berth.yaml; `berth add` registers one.'
        : all.some(scope.has)
          ? 'No service matches.'
          : 'Nothing is registered here; `berth ps -A` lists the other stacks.';
    context.out.rows(shown, columnsOf(scope, choice.all), empty);
    return missing.length > 0 ? 1 : undefined;
  },
});
