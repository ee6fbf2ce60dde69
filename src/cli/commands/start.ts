// berth start

import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, negatedFlagOption, textOption } from '../kit/command.ts';
import { selectServices } from '../kit/service_selection.ts';
import { startContinuesNote, startService } from '../kit/start_service.ts';

export const startCommand = defineCommand({
  about:
    'Returns when the ready-check of each has passed, and shows meanwhile what it is waiting for. A service that runs already is left alone. Dependencies are not started: `berth up` and `berth group start` do that.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'stopped' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: durationOption('--timeout <time>', 'how long each may take; default: its own, 30s unless set'),
    wait: negatedFlagOption('--no-wait', 'return as soon as the processes are there'),
    strict: flagOption('--strict', 'fail with exit code 8 when one runs already'),
  },
  examples: [
    ['berth start web', 'start one and wait until it is ready'],
    ['berth start web --timeout 2m', 'for one that is slow to start'],
  ],
  run: async (context, names, { group, timeout, wait, strict }) => {
    const client = await context.client();
    const all = await selectServices(client, names, group);
    return runBatch(
      context,
      all,
      'starting',
      (name, { onWaiting }) => startService(client, name, onWaiting, { timeout, wait, strict }),
      startContinuesNote,
    );
  },
});
