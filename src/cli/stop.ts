// berth stop
import type { StopAnswer } from '../client/records.ts';
import { formatDuration } from '../project/duration.ts';
import { command, duration, text } from './command.ts';
import { forEach } from './each.ts';
import { chosen } from './names.ts';
import { endText } from './show.ts';

/** What the proof of a stop says. */
export function stopText(answer: StopAnswer): string {
  const facts = [
    endText(answer),
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

export const stop = command({
  about:
    'The whole process tree of each gets its stop signal, and after the grace period what is left is killed.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'running' }],
  options: {
    group: text('--group <name>', 'all services of this group, in no order', 'group'),
    grace: duration('--grace <time>', 'how long each may take to end; default: its own, 5s unless set'),
  },
  run: async (cli, names, { group, grace }) => {
    const berth = await cli.berth();
    const all = await chosen(berth, names, group);
    return forEach(cli, all, 'stopping', async (name) => {
      const before = await berth.service(name);
      const answer = await berth.stop(name, { grace });
      if (before.pid !== undefined || before.status === 'stopping')
        return { record: answer, text: stopText(answer) };
      return { record: answer, text: 'is stopped already', isSame: true };
    });
  },
});
