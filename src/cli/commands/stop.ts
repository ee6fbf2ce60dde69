// berth stop
import type { ServiceDetail } from '../../client/records.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, FORCE_OPTIONS, textOption } from '../kit/command.ts';
import { describeStop } from '../kit/format.ts';
import { selectServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS } from '../kit/stack_scope.ts';

/** A stop ends a run, and not the schedule that starts the next one. */
const aboutSchedule = ({ nextRunAt }: ServiceDetail): string =>
  nextRunAt
    ? `\n    its schedule starts it again, next at ${nextRunAt}; it ends without \`schedule\`, or with \`berth rm\``
    : '';

export const stopCommand = defineCommand({
  about:
    'Sends the stop signal to the whole process tree of each service, and kills what is left after the ' +
    'grace period. A shorter grace period also shortens a stop under way.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'running' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    grace: durationOption('--grace <time>', 'time each service has to end; default: its own, 5s unless set'),
    ...FORCE_OPTIONS,
    ...SCOPE_OPTIONS,
  },
  run: async (context, names, { force, group, grace, ...choice }) => {
    const client = await context.clientFor(force);
    const all = await selectServices(client, names, { ...choice, group });
    return runBatch(context, all, 'stopping', async (name) => {
      const before = await client.service(name);
      const answer = await client.stop(name, { grace });
      const isUnchanged = before.pid === undefined && before.status !== 'stopping';
      const text = isUnchanged ? 'is stopped already' : describeStop(answer);
      return { record: answer, text: text + aboutSchedule(before), isUnchanged };
    });
  },
});
