// berth restart
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, FORCE_OPTIONS, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { selectServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS } from '../kit/stack_scope.ts';
import { restartService, startContinuesNote } from '../kit/start_service.ts';
import { startWholeGroup } from './group.ts';

export const restartCommand = defineCommand({
  about: 'Returns once the ready-check of each service has passed. Starts a service that is stopped.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'service' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in dependency order', 'group'),
    timeout: durationOption('--timeout <time>', 'time each service has to start'),
    grace: durationOption('--grace <time>', 'time each service has to end'),
    ...FORCE_OPTIONS,
    ...SCOPE_OPTIONS,
  },
  run: async (context, names, { force, group, timeout, grace, ...choice }) => {
    if (group !== undefined) {
      if (names.length > 0)
        throw new UsageError('--group cannot be combined with names', 'Restart one after the other.');
      return startWholeGroup(context, {
        given: group,
        choice,
        verb: 'restarting',
        start: (client, name) => client.restartGroup(name, { timeout, grace }),
      });
    }
    const client = await context.clientFor(force);
    const all = await selectServices(client, names, { ...choice, group });
    return runBatch(
      context,
      all,
      'restarting',
      (name, { onWaiting }) => restartService(client, name, onWaiting, { timeout, grace }),
      startContinuesNote,
    );
  },
});
