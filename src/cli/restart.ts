// berth restart
import type { Client } from '../client/connect.ts';
import { formatDuration } from '../project/duration.ts';
import { command, duration, text } from './command.ts';
import { type Done, forEach } from './each.ts';
import { chosen } from './names.ts';
import { goesOn, whileTelling } from './starting.ts';

/** Stops `name` and starts it again; one that is stopped is started. */
export async function restartOne(
  berth: Client,
  name: string,
  tell: (about: string) => void,
  { timeout, grace }: { timeout?: number | undefined; grace?: number | undefined },
): Promise<Done> {
  const began = performance.now();
  const answer = await whileTelling(berth, name, tell, berth.restart(name, { timeout, grace }));
  const { url } = await berth.resolve(name);
  const took = formatDuration(performance.now() - began);
  return {
    record: { ...answer, url },
    text: `was restarted at ${url} (pid ${answer.pid ?? 'unknown'}, ${took})`,
  };
}

export const restart = command({
  about: 'Returns when the ready-check of each has passed. One that is stopped is started.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'service' }],
  options: {
    group: text('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: duration('--timeout <time>', 'how long each may take to start'),
    grace: duration('--grace <time>', 'how long each may take to end'),
  },
  run: async (cli, names, { group, timeout, grace }) => {
    const berth = await cli.berth();
    const all = await chosen(berth, names, group);
    return forEach(
      cli,
      all,
      'restarting',
      (name, { tell }) => restartOne(berth, name, tell, { timeout, grace }),
      goesOn,
    );
  },
});
