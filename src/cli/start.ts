// berth start
import { command, duration, flag, text, unless } from './command.ts';
import { forEach } from './each.ts';
import { chosen } from './names.ts';
import { goesOn, startOne } from './starting.ts';

export const start = command({
  about:
    'Returns when the ready-check of each has passed, and shows meanwhile what it is waiting for. A service that runs already is left alone. Dependencies are not started: `berth up` and `berth group start` do that.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'stopped' }],
  options: {
    group: text('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: duration('--timeout <time>', 'how long each may take; default: its own, 30s unless set'),
    wait: unless('--no-wait', 'return as soon as the processes are there'),
    strict: flag('--strict', 'fail with exit code 8 when one runs already'),
  },
  examples: [
    ['berth start web', 'start one and wait until it is ready'],
    ['berth start web --timeout 2m', 'for one that is slow to start'],
  ],
  run: async (cli, names, { group, timeout, wait, strict }) => {
    const berth = await cli.berth();
    const all = await chosen(berth, names, group);
    return forEach(
      cli,
      all,
      'starting',
      (name, { tell }) => startOne(berth, name, tell, { timeout, wait, strict }),
      goesOn,
    );
  },
});
