// berth restart
import type { Client } from '../../client/create_client.ts';
import { formatDuration } from '../../project/duration.ts';
import { type BatchResult, runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, textOption } from '../kit/command.ts';
import { selectServices } from '../kit/service_selection.ts';
import { startContinuesNote, withWaitReports } from '../kit/start_service.ts';

/** Stops `name` and starts it again; one that is stopped is started. */
export async function restartService(
  berth: Client,
  name: string,
  onWaiting: (about: string) => void,
  { timeout, grace }: { timeout?: number | undefined; grace?: number | undefined },
): Promise<BatchResult> {
  const began = performance.now();
  const answer = await withWaitReports(berth, name, onWaiting, berth.restart(name, { timeout, grace }));
  const { url } = await berth.resolve(name);
  const took = formatDuration(performance.now() - began);
  return {
    record: { ...answer, url },
    text: `was restarted at ${url} (pid ${answer.pid ?? 'unknown'}, ${took})`,
  };
}

export const restartCommand = defineCommand({
  about: 'Returns when the ready-check of each has passed. One that is stopped is started.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'service' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, in no order', 'group'),
    timeout: durationOption('--timeout <time>', 'how long each may take to start'),
    grace: durationOption('--grace <time>', 'how long each may take to end'),
  },
  run: async (cli, names, { group, timeout, grace }) => {
    const berth = await cli.client();
    const all = await selectServices(berth, names, group);
    return runBatch(
      cli,
      all,
      'restarting',
      (name, { onWaiting }) => restartService(berth, name, onWaiting, { timeout, grace }),
      startContinuesNote,
    );
  },
});
