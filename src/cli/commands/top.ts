// berth top
import { setTimeout as pause } from 'node:timers/promises';
import type { Service } from '../../client/records.ts';
import { cpuText, memoryText } from '../../presentation/format.ts';
import { defineCommand, negatedFlagOption } from '../kit/command.ts';
import { describeStatus, formatElapsed, formatServiceMemory, statusStyle } from '../kit/format.ts';
import { type Column, formatTable, type Output } from '../kit/output.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope } from '../kit/stack_scope.ts';
import { stdout } from '../kit/standard_streams.ts';

const REFRESH_MS = 2_000;

const columnsOf = ({ label }: StackScope): readonly Column<Service>[] => [
  { title: 'NAME', cell: ({ name }) => label(name), canShrink: true, keepsEnd: true },
  { title: 'STATUS', cell: describeStatus, style: statusStyle },
  { title: 'CPU', cell: ({ cpu }) => cpuText(cpu), alignRight: true },
  { title: 'MEMORY', cell: formatServiceMemory, alignRight: true },
  { title: 'UP', cell: ({ startedAt }) => formatElapsed(startedAt), alignRight: true },
  { title: 'RESTARTS', cell: ({ restarts }) => restarts, alignRight: true },
  { title: 'URL', cell: ({ url }) => url },
];

const byUsage = (a: Service, b: Service): number =>
  (b.cpu ?? -1) - (a.cpu ?? -1) || (b.rssMB ?? 0) - (a.rssMB ?? 0) || a.name.localeCompare(b.name);

function renderScreen(services: readonly Service[], scope: StackScope, out: Output, height: number): string {
  const running = services.filter(({ pid }) => pid !== undefined);
  const cpu = running.reduce((sum, service) => sum + (service.cpu ?? 0), 0);
  const memory = running.reduce((sum, service) => sum + (service.rssMB ?? 0), 0);
  const usage = `${cpuText(cpu)} CPU, ${memoryText(memory)}`;
  const head = `${services.length} services, ${running.length} with a process, ${usage}`;
  const busiest = [...services].sort(byUsage).slice(0, Math.max(1, height - 4));
  return `${head}\n\n${formatTable(busiest, columnsOf(scope), out.style, stdout().columns)}`;
}

export const topCommand = defineCommand({
  about:
    'Sorts by the CPU use of the whole process tree of each service, and refreshes every 2 s until ' +
    'Ctrl-C. Prints once if stdout is no terminal.',
  options: { stream: negatedFlagOption('--no-stream', 'print once and end'), ...SCOPE_OPTIONS },
  run: async (context, _names, { stream, ...choice }) => {
    const client = await context.client();
    const scope = await stackScope(client, choice);
    const services = async () => (await client.services()).filter(scope.has);
    const out = stdout();
    const isLive = out.isTTY && stream && !context.out.isData;
    if (!isLive) {
      context.out.rows((await services()).sort(byUsage), columnsOf(scope), 'No service is registered.');
      return;
    }
    // Switches to the alternate screen, so that the user's screen is unchanged afterwards.
    out.write('\x1b[?1049h\x1b[?25l');
    const restore = (): void => void out.write('\x1b[?25h\x1b[?1049l');
    const removeInterrupt = context.onInterrupt(restore);
    try {
      for (;;) {
        const text = renderScreen(await services(), scope, context.out, out.rows);
        out.write(`\x1b[H\x1b[2J${text}\n`);
        await pause(REFRESH_MS);
      }
    } finally {
      restore();
      removeInterrupt();
    }
  },
});
