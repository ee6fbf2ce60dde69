// berth restart
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, FORCE_OPTIONS, textOption } from '../kit/command.ts';
import { selectServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS } from '../kit/stack_scope.ts';
import { restartService, startContinuesNote } from '../kit/start_service.ts';

export const restartCommand = defineCommand({
  about: 'Returns once the ready-check of each service has passed. Starts a service that is stopped.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'service' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: durationOption('--timeout <time>', 'time each service has to start'),
    grace: durationOption('--grace <time>', 'time each service has to end'),
    ...FORCE_OPTIONS,
    ...SCOPE_OPTIONS,
  },
  run: async (context, names, { force, group, timeout, grace, ...choice }) => {
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
