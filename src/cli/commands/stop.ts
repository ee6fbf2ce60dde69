// berth stop
import type { StopResult } from '../../client/records.ts';
import { formatDuration } from '../../project/duration.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, textOption } from '../kit/command.ts';
import { describeExit } from '../kit/format.ts';
import { selectServices } from '../kit/service_selection.ts';

/** What the proof of a stop says. */
export function describeStop(answer: StopResult): string {
  const facts = [
    describeExit(answer),
    answer.reaped > 1 ? `${answer.reaped} processes` : '',
    answer.escalated ? 'had to be killed' : '',
    formatDuration(answer.ms),
  ].filter(Boolean);
  const left = answer.left
    .map(({ pid, command: line, reason }) => `\n    left: pid ${pid} (${line}): ${reason}`)
    .join('');
  const port = answer.portFree ? '' : '\n    its port is still in use';
  return `is stopped (${facts.join(', ')})${left}${port}`;
}

export const stopCommand = defineCommand({
  about:
    'The whole process tree of each gets its stop signal, and after the grace period what is left is killed.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'running' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    grace: durationOption('--grace <time>', 'how long each may take to end; default: its own, 5s unless set'),
  },
  run: async (cli, names, { group, grace }) => {
    const berth = await cli.client();
    const all = await selectServices(berth, names, group);
    return runBatch(cli, all, 'stopping', async (name) => {
      const before = await berth.service(name);
      const answer = await berth.stop(name, { grace });
      if (before.pid !== undefined || before.status === 'stopping')
        return { record: answer, text: describeStop(answer) };
      return { record: answer, text: 'is stopped already', isUnchanged: true };
    });
  },
});
