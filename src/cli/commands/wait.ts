// berth wait
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceStatus } from '../../client/records.ts';
import { tookText } from '../../presentation/format.ts';
import { runBatch } from '../kit/batch.ts';
import { choiceOption, defineCommand, durationOption } from '../kit/command.ts';
import { CommandError, EXIT_CODE } from '../kit/exit_codes.ts';
import { namedServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';
import { withWaitReports } from '../kit/start_service.ts';

/** The statuses that end the wait for each goal. A completed task is ready for services that depend on it. */
const GOALS: { readonly [goal in 'ready' | 'stopped']: readonly ServiceStatus[] } = {
  ready: ['running', 'completed'],
  stopped: ['stopped', 'crashed', 'completed'],
};
const POLL_MS = 100;
const DEFAULT_TIMEOUT_MS = 30_000;

export const waitCommand = defineCommand({
  about: 'Starts and stops nothing. Exit code 7 if a service is not ready in time.',
  args: [{ syntax: '<names...>', about: 'the services', completes: 'service' }],
  options: {
    goal: choiceOption('--for <state>', 'what to wait for; default ready', ['ready', 'stopped']),
    timeout: durationOption('--timeout <time>', 'time to wait; default 30s'),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth start web --no-wait && berth wait web --timeout 2m', 'start now, wait later']],
  run: async (context, names, { goal = 'ready', timeout = DEFAULT_TIMEOUT_MS, ...choice }) => {
    const client = await context.client();
    const isThere = (status: ServiceStatus): boolean => GOALS[goal].includes(status);
    const selected = namedServices(await stackScope(client, choice), names);
    return runBatch(context, selected, `waiting until it is ${goal}`, (name, { onWaiting }) => {
      const began = performance.now();
      const look = async () => {
        for (;;) {
          const { status, pid, url } = await client.service(name);
          if (isThere(status))
            return { record: { name, status, pid: pid ?? null, url }, text: `is ${status}` };
          if (performance.now() - began > timeout) {
            const exitCode = goal === 'ready' ? EXIT_CODE.notReady : EXIT_CODE.failed;
            const message = `is ${status}, not ${goal}, after ${tookText(timeout)}`;
            throw new CommandError(message, `\`berth status ${name}\` says why.`, exitCode);
          }
          await pause(POLL_MS);
        }
      };
      return withWaitReports(client, name, onWaiting, look());
    });
  },
});
