// berth ps
import type { Service } from '../client/records.ts';
import { STATUSES } from '../protocol/service.ts';
import { choice, command, flag, text } from './command.ts';
import type { Column } from './output.ts';
import { cpuText, endText, memoryText, since, statusStyle, statusText } from './show.ts';

const COLUMNS: readonly Column<Service>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'STATUS', cell: statusText, style: statusStyle },
  { title: 'GROUP', cell: ({ group }) => group },
  { title: 'PID', cell: ({ pid }) => pid, right: true },
  { title: 'CPU', cell: ({ cpu }) => cpuText(cpu), right: true },
  { title: 'MEMORY', cell: ({ rssMB }) => memoryText(rssMB), right: true },
  { title: 'UP', cell: ({ startedAt }) => since(startedAt), right: true },
  { title: 'RESTARTS', cell: ({ restarts }) => restarts, right: true, wide: true },
  { title: 'LAST END', cell: (service) => (service.pid ? '' : endText(service)), wide: true },
  { title: 'STARTED', cell: ({ startedAt }) => startedAt, wide: true },
  { title: 'URL', cell: ({ url }) => url },
];

export const ps = command({
  about: 'Every registered service is listed, whatever its state.',
  args: [{ syntax: '[names...]', about: 'only these', completes: 'service' }],
  options: {
    status: choice('--status <status>', 'only those with this status', STATUSES),
    group: text('--group <name>', 'only those of this group', 'group'),
    quiet: flag('-q, --quiet', 'print the names alone'),
  },
  examples: [
    ['berth ps --status crashed', 'what went wrong'],
    ['berth ps --json | jq -r ".[].url"', 'every URL'],
  ],
  run: async (cli, names, { status, group, quiet }) => {
    const all = await (await cli.berth()).services();
    const shown = all.filter(
      (service) =>
        (names.length === 0 || names.includes(service.name)) &&
        (status === undefined || service.status === status) &&
        (group === undefined || service.group === group),
    );
    const missing = names.filter((name) => !all.some((service) => service.name === name));
    for (const name of missing) cli.out.warn(`there is no service ${name}`);
    if (quiet && !cli.out.isData) {
      for (const { name } of shown) cli.out.line(name);
      return undefined;
    }
    const empty =
      all.length === 0
        ? 'No service is registered: `berth up` brings up those of a berth.yaml, `berth add` registers one.'
        : 'No service is like that.';
    cli.out.rows(shown, COLUMNS, empty);
    return missing.length > 0 ? 1 : undefined;
  },
});
