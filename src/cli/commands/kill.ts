// berth kill
import { constants } from 'node:os';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, FORCE_OPTIONS, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { selectServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS } from '../kit/stack_scope.ts';

/** The signal named by `given`: `HUP`, `SIGHUP`, `hup` or `1`. Throws a UsageError. */
function signalName(given: string): string {
  const word = given.toUpperCase();
  const rows = Object.entries(constants.signals);
  const found = rows.find(([name, number]) => [name, name.slice(3), String(number)].includes(word));
  if (found) return found[0];
  throw new UsageError(`${given} is not a signal`, 'Such as HUP, USR1 or TERM.');
}

export const killCommand = defineCommand({
  about:
    'Sends a signal to the whole process group of each service. If a service ends by it, its restart policy ' +
    'says what follows; `berth stop` ends a service for good.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'running' }],
  options: {
    signal: textOption('-s, --signal <signal>', 'the signal, such as HUP or USR1; default: TERM'),
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    ...FORCE_OPTIONS,
    ...SCOPE_OPTIONS,
  },
  examples: [['berth kill -s HUP web', 'web reads its configuration again, if that is what it does on HUP']],
  run: async (context, names, { force, signal, group, ...choice }) => {
    const wanted = signalName(signal ?? 'TERM');
    const client = await context.clientFor(force);
    const all = await selectServices(client, names, { ...choice, group });
    return runBatch(context, all, 'signalling', async (name) => {
      const answer = await client.signal(name, wanted);
      return { record: answer, text: `got ${wanted} (processes: ${answer.processes})` };
    });
  },
});
