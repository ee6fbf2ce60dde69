// berth wait
import { setTimeout as pause } from 'node:timers/promises';
import { formatDuration } from '../project/duration.ts';
import { choice, command, duration } from './command.ts';
import { forEach } from './each.ts';
import { CommandError, EXIT } from './exit.ts';
import { whileTelling } from './starting.ts';

const LOOK_MS = 100;
const DEFAULT_MS = 30_000;

export const wait = command({
  about: 'Starts and stops nothing. Ends with exit code 7 when a service is not ready in time.',
  args: [{ syntax: '<names...>', about: 'the services', completes: 'service' }],
  options: {
    goal: choice('--for <state>', 'what to wait for; default ready', ['ready', 'stopped']),
    timeout: duration('--timeout <time>', 'how long; default 30s'),
  },
  examples: [['berth start web --no-wait && berth wait web --timeout 2m', 'start now, wait later']],
  run: async (cli, names, { goal = 'ready', timeout = DEFAULT_MS }) => {
    const berth = await cli.berth();
    const isThere = (status: string): boolean =>
      goal === 'ready' ? status === 'running' : status === 'stopped' || status === 'crashed';
    return forEach(cli, names, `waiting until it is ${goal}`, (name, { tell }) => {
      const began = performance.now();
      const look = async () => {
        for (;;) {
          const { status, pid, url } = await berth.service(name);
          if (isThere(status))
            return { record: { name, status, pid: pid ?? null, url }, text: `is ${status}` };
          if (performance.now() - began > timeout) {
            const exitCode = goal === 'ready' ? EXIT.notReady : EXIT.failed;
            const message = `is ${status}, not ${goal}, after ${formatDuration(timeout)}`;
            throw new CommandError(message, `\`berth status ${name}\` says why.`, exitCode);
          }
          await pause(LOOK_MS);
        }
      };
      return whileTelling(berth, name, tell, look());
    });
  },
});
