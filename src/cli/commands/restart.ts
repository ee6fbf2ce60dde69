// berth restart
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, textOption } from '../kit/command.ts';
import { selectServices } from '../kit/service_selection.ts';
import { restartService, startContinuesNote } from '../kit/start_service.ts';

export const restartCommand = defineCommand({
  about: 'Returns when the ready-check of each has passed. One that is stopped is started.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'service' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: durationOption('--timeout <time>', 'how long each may take to start'),
    grace: durationOption('--grace <time>', 'how long each may take to end'),
  },
  run: async (context, names, { group, timeout, grace }) => {
    const client = await context.client();
    const all = await selectServices(client, names, group);
    return runBatch(
      context,
      all,
      'restarting',
      (name, { onWaiting }) => restartService(client, name, onWaiting, { timeout, grace }),
      startContinuesNote,
    );
  },
});
