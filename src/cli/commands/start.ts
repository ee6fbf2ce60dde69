// berth start

import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, negatedFlagOption, textOption } from '../kit/command.ts';
import { selectServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS } from '../kit/stack_scope.ts';
import { startContinuesNote, startService } from '../kit/start_service.ts';

export const startCommand = defineCommand({
  about:
    'Returns once the ready-check of each service has passed; shows what it waits for meanwhile. Leaves ' +
    'alone a service that already runs. Does not start dependencies: `berth up` and `berth group start` ' +
    'do.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'stopped' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: durationOption(
      '--timeout <time>',
      'time each service has to start; default: its own, 30s unless set',
    ),
    wait: negatedFlagOption('--no-wait', 'return as soon as the processes run'),
    awake: flagOption('--awake', 'do not put it to sleep for being idle, until it is stopped'),
    strict: flagOption('--strict', 'fail with exit code 8 if a service already runs'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth start web', 'start a service and wait until it is ready'],
    ['berth start web --timeout 2m', 'for a service that starts slowly'],
  ],
  run: async (context, names, { group, timeout, wait, awake, strict, ...choice }) => {
    const client = await context.client();
    const all = await selectServices(client, names, { ...choice, group });
    return runBatch(
      context,
      all,
      'starting',
      (name, { onWaiting }) => startService(client, name, onWaiting, { timeout, wait, awake, strict }),
      startContinuesNote,
    );
  },
});
