// berth sleep and berth wake
import type { StartResult } from '../../client/records.ts';
import { tookText } from '../../presentation/format.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { atUrl } from '../kit/format.ts';
import { namedServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope } from '../kit/stack_scope.ts';
import { startContinuesNote, withWaitReports } from '../kit/start_service.ts';

/** Throws a UsageError unless the user gives either names or a group, and not both. */
function checkSelection(names: readonly string[], group: string | undefined): void {
  if (names.length > 0 !== (group !== undefined)) return;
  throw new UsageError('no service is named', 'Name one or more services, or give --group without names.');
}

const started = ({ label }: StackScope, { name, status, pid }: StartResult): string =>
  `${label(name)} is ${status} (pid ${pid ?? 'unknown'})`;

export const serviceSleepCommand = defineCommand({
  about:
    'Ends the processes of services that have `sleep`. A connection to the port of one, or to its name, wakes ' +
    'it and is served when it is ready.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'running' }],
  options: {
    group: textOption('--group <name>', 'all services of this group, dependents first', 'group'),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth sleep --group shop', 'put a whole stack to sleep']],
  run: async (context, names, { group, ...choice }) => {
    checkSelection(names, group);
    const client = await context.client();
    const scope = await stackScope(client, choice);
    if (group !== undefined) {
      const answer = await client.sleepGroup(scope.group(group));
      context.out.record(answer, () =>
        answer.services.map(({ name, status }) => `${scope.label(name)} is ${status}`).join('\n'),
      );
      return undefined;
    }
    return runBatch(context, namedServices(scope, names), 'putting to sleep', async (name) => {
      const before = await client.service(name);
      const answer = await client.sleep(name);
      return { record: answer, text: `is ${answer.status}`, isUnchanged: before.status === answer.status };
    });
  },
});

export const serviceWakeCommand = defineCommand({
  about:
    'Starts services with all that they depend on, and waits until they are ready. What runs is left alone.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'stopped' }],
  options: {
    group: textOption('--group <name>', 'all services of this group that have `sleep`', 'group'),
    timeout: durationOption('--timeout <time>', 'time each service has to start; default: its own'),
    ...SCOPE_OPTIONS,
  },
  run: async (context, names, { group, timeout, ...choice }) => {
    checkSelection(names, group);
    const client = await context.client();
    const scope = await stackScope(client, choice);
    if (group !== undefined) {
      const answer = await client.wakeGroup(scope.group(group), { timeout });
      context.out.record(answer, () => answer.services.map((service) => started(scope, service)).join('\n'));
      return undefined;
    }
    const wakeOne = async (name: string, onWaiting: (about: string) => void) => {
      const began = performance.now();
      const before = await client.service(name);
      const answer = await withWaitReports(client, name, onWaiting, client.wake(name, { timeout }));
      const took = tookText(performance.now() - began);
      const text = `is ${answer.status}${atUrl(before)} (pid ${answer.pid ?? 'unknown'}, ${took})`;
      return { record: answer, text, isUnchanged: before.status === 'running' };
    };
    return runBatch(
      context,
      namedServices(scope, names),
      'waking',
      (name, { onWaiting }) => wakeOne(name, onWaiting),
      startContinuesNote,
    );
  },
});
