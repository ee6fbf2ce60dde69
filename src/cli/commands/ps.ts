// berth ps
import type { Service } from '../../client/records.ts';
import { SERVICE_STATUSES } from '../../protocol/service.ts';
import { choiceOption, defineCommand, flagOption, textOption } from '../kit/command.ts';
import {
  describeExit,
  describeStatus,
  formatCpu,
  formatElapsed,
  formatMemory,
  statusStyle,
} from '../kit/format.ts';
import type { Column } from '../kit/output.ts';

const COLUMNS: readonly Column<Service>[] = [
  { title: 'NAME', cell: ({ name }) => name, canShrink: true },
  { title: 'STATUS', cell: describeStatus, style: statusStyle },
  { title: 'GROUP', cell: ({ group }) => group, canShrink: true },
  { title: 'PID', cell: ({ pid }) => pid, alignRight: true },
  { title: 'CPU', cell: ({ cpu }) => formatCpu(cpu), alignRight: true },
  { title: 'MEMORY', cell: ({ rssMB }) => formatMemory(rssMB), alignRight: true },
  { title: 'UP', cell: ({ startedAt }) => formatElapsed(startedAt), alignRight: true },
  { title: 'RESTARTS', cell: ({ restarts }) => restarts, alignRight: true, wideOnly: true },
  { title: 'LAST END', cell: (service) => (service.pid ? '' : describeExit(service)), wideOnly: true },
  { title: 'STARTED', cell: ({ startedAt }) => startedAt, wideOnly: true },
  { title: 'URL', cell: ({ url }) => url },
];

export const psCommand = defineCommand({
  about: 'Lists every registered service, whatever its state.',
  args: [{ syntax: '[names...]', about: 'the services; default: all', completes: 'service' }],
  options: {
    status: choiceOption('--status <status>', 'only services with this status', SERVICE_STATUSES),
    group: textOption('--group <name>', 'only services of this group', 'group'),
    all: flagOption('-a, --all', 'accepted and ignored: every service is listed anyway'),
    quiet: flagOption('-q, --quiet', 'print only names'),
  },
  examples: [
    ['berth ps --status crashed', 'the services that crashed'],
    ['berth ps --json | jq -r ".[].url"', 'the URL of each service'],
  ],
  run: async (context, names, { status, group, quiet }) => {
    const all = await (await context.client()).services();
    const shown = all.filter(
      (service) =>
        (names.length === 0 || names.includes(service.name)) &&
        (status === undefined || service.status === status) &&
        (group === undefined || service.group === group),
    );
    const missing = names.filter((name) => !all.some((service) => service.name === name));
    for (const name of missing) context.out.warn(`there is no service ${name}`);
    if (quiet && !context.out.isData) {
      for (const { name } of shown) context.out.line(name);
      return undefined;
    }
    const empty =
      all.length === 0
        ? 'No service is registered. `berth up` starts those of a berth.yaml; `berth add` registers one.'
        : 'No service matches.';
    context.out.rows(shown, COLUMNS, empty);
    return missing.length > 0 ? 1 : undefined;
  },
});
