// berth top
import { setTimeout as pause } from 'node:timers/promises';
import type { Service } from '../client/records.ts';
import { command, unless } from './command.ts';
import { type Column, type Output, table } from './output.ts';
import { cpuText, memoryText, since, statusStyle, statusText } from './show.ts';
import { stdout } from './streams.ts';

const EVERY_MS = 2_000;

const COLUMNS: readonly Column<Service>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'STATUS', cell: statusText, style: statusStyle },
  { title: 'CPU', cell: ({ cpu }) => cpuText(cpu), right: true },
  { title: 'MEMORY', cell: ({ rssMB }) => memoryText(rssMB), right: true },
  { title: 'UP', cell: ({ startedAt }) => since(startedAt), right: true },
  { title: 'RESTARTS', cell: ({ restarts }) => restarts, right: true },
  { title: 'URL', cell: ({ url }) => url },
];

const byUse = (a: Service, b: Service): number =>
  (b.cpu ?? -1) - (a.cpu ?? -1) || (b.rssMB ?? 0) - (a.rssMB ?? 0) || a.name.localeCompare(b.name);

function screen(services: readonly Service[], out: Output, height: number): string {
  const running = services.filter(({ pid }) => pid !== undefined);
  const cpu = running.reduce((sum, service) => sum + (service.cpu ?? 0), 0);
  const memory = running.reduce((sum, service) => sum + (service.rssMB ?? 0), 0);
  const head = `${services.length} services, ${running.length} with a process, ${cpuText(cpu)} CPU, ${memoryText(memory)}`;
  return `${head}\n\n${table([...services].sort(byUse).slice(0, Math.max(1, height - 4)), COLUMNS, out.style)}`;
}

export const top = command({
  about:
    'Sorted by CPU, over the whole process tree of each; every 2 s, until Ctrl-C. Where stdout is no terminal it prints once.',
  options: { stream: unless('--no-stream', 'print once and end') },
  run: async (cli, _names, { stream }) => {
    const berth = await cli.berth();
    const out = stdout();
    const isLive = out.isTTY && stream && !cli.out.isData;
    if (!isLive) {
      cli.out.rows([...(await berth.services())].sort(byUse), COLUMNS, 'No service is registered.');
      return;
    }
    // The other screen of the terminal: what was there before comes back.
    out.write('\x1b[?1049h\x1b[?25l');
    const restore = (): void => void out.write('\x1b[?25h\x1b[?1049l');
    const off = cli.onInterrupt(restore);
    try {
      for (;;) {
        const text = screen(await berth.services(), cli.out, out.rows);
        out.write(`\x1b[H\x1b[2J${text}\n`);
        await pause(EVERY_MS);
      }
    } finally {
      restore();
      off();
    }
  },
});
