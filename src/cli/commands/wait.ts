// berth wait
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail, ServiceStatus } from '../../client/records.ts';
import { tookText } from '../../presentation/format.ts';
import { SERVICE } from '../../settings/limits.ts';
import { runBatch } from '../kit/batch.ts';
import { choiceOption, defineCommand, durationOption } from '../kit/command.ts';
import { CommandError, EXIT_CODE } from '../kit/exit_codes.ts';
import { describeStatus } from '../kit/format.ts';
import { namedServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';
import { withWaitReports } from '../kit/start_service.ts';

/** The statuses that end the wait for each goal. `completed`: what `ready` means for a task. */
const GOALS: { readonly [goal in 'ready' | 'completed' | 'stopped']: readonly ServiceStatus[] } = {
  ready: ['running', 'completed'],
  completed: ['completed'],
  stopped: ['stopped', 'crashed', 'completed'],
};
const POLL_MS = 100;
const DEFAULT_TIMEOUT_MS = 30_000;

/** Throws a CommandError if the task has failed, and its restart policy does not start it again. */
async function failIfCrashed(client: Client, task: ServiceDetail): Promise<void> {
  const { lastLines, status, waitingFor } = await client.explain(task.name);
  if (status !== 'crashed' || waitingFor !== null) return;
  const lines = lastLines.length > 0 ? ['Its last lines:', ...lastLines] : ['Its log is empty.'];
  throw new CommandError(`is ${describeStatus(task)}, not completed`, lines.join('\n'), EXIT_CODE.notReady);
}

export const waitCommand = defineCommand({
  about:
    'Starts and stops nothing. A task is ready once it has completed. Exit code 7 if a service is not ready ' +
    'in time, or a task has failed.',
  args: [{ syntax: '<names...>', about: 'the services', completes: 'service' }],
  options: {
    goal: choiceOption('--for <state>', 'what to wait for; default ready', ['ready', 'stopped']),
    timeout: durationOption('--timeout <time>', 'time to wait; default 30s, for a task under way a day'),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth start web --no-wait && berth wait web --timeout 2m', 'start now, wait later']],
  run: async (context, names, { goal = 'ready', timeout, ...choice }) => {
    const client = await context.client();
    const selected = namedServices(await stackScope(client, choice), names);
    return runBatch(context, selected, `waiting until it is ${goal}`, (name, { onWaiting }) => {
      const began = performance.now();
      const look = async () => {
        for (;;) {
          const service = await client.service(name);
          const { kind, pid, status, url } = service;
          const isTask = goal === 'ready' && kind === 'task';
          const wanted = isTask ? 'completed' : goal;
          if (GOALS[wanted].includes(status))
            return { record: { name, status, pid: pid ?? null, url }, text: `is ${status}` };
          if (isTask && status === 'crashed') await failIfCrashed(client, service);
          const isUnderWay = isTask && status !== 'stopped';
          const limit = timeout ?? (isUnderWay ? SERVICE.taskWaitMs : DEFAULT_TIMEOUT_MS);
          if (performance.now() - began > limit) {
            const exitCode = goal === 'ready' ? EXIT_CODE.notReady : EXIT_CODE.failed;
            const message = `is ${status}, not ${wanted}, after ${tookText(limit)}`;
            throw new CommandError(message, `\`berth status ${name}\` says why.`, exitCode);
          }
          await pause(POLL_MS);
        }
      };
      return withWaitReports(client, name, onWaiting, look());
    });
  },
});
