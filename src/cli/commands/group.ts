// berth group ls, start, stop, restart
import type { Client } from '../../client/create_client.ts';
import type { Group, GroupStarted } from '../../client/records.ts';
import { countText } from '../../presentation/format.ts';
import { defineCommand, durationOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import type { Column } from '../kit/output.ts';
import { createProgress } from '../kit/progress.ts';
import { SCOPE_OPTIONS, type StackChoice, type StackScope, stackScope } from '../kit/stack_scope.ts';

const columnsOf = ({ label }: StackScope): readonly Column<Group>[] => [
  { title: 'NAME', cell: ({ name }) => label(name) },
  { title: 'SERVICES', cell: ({ services }) => services, alignRight: true },
  {
    title: 'RUNNING',
    cell: ({ running }) => running,
    alignRight: true,
    style: ({ running, services }) => (running === services ? 'green' : 'yellow'),
  },
];

export const groupListCommand = defineCommand({
  options: SCOPE_OPTIONS,
  run: async (context, _names, choice) => {
    const client = await context.client();
    const scope = await stackScope(client, choice);
    context.out.rows(
      (await client.groups()).filter(({ name }) => scope.hasGroup(name)),
      columnsOf(scope),
      'There are no groups. `berth add --group` puts a service in one.',
    );
  },
});

/** A request that starts or restarts the members of a group. */
interface GroupStartWork {
  given: string;
  choice: StackChoice;
  verb: 'starting' | 'restarting';
  start: (client: Client, name: string) => Promise<GroupStarted>;
}

/** Starts a group with one request, shows meanwhile how many members run, and then prints each member. */
export async function startWholeGroup(
  context: CommandContext,
  { given, choice, verb, start }: GroupStartWork,
): Promise<undefined> {
  const client = await context.client();
  const { group, label } = await stackScope(client, choice);
  const name = group(given);
  const progress = createProgress(context.out);
  const removeInterrupt = context.onInterrupt(() => {
    progress.stop();
    context.out.note(`The group goes on ${verb} without you; \`berth group stop ${given}\` ends it.`);
  });
  progress.begin(name, verb);
  const timer = setInterval(() => {
    const say = ({ running, services }: Group): void =>
      progress.update(name, `${running} of ${countText(services, 'service')} running`);
    client.groups().then(
      (all) => all.filter((group) => group.name === name).forEach(say),
      () => {},
    );
  }, 500);
  try {
    const answer = await start(client, name);
    progress.stop();
    context.out.record(answer, () =>
      answer.services
        .map((one) => `${label(one.name)} is ${one.status} (pid ${one.pid ?? 'unknown'})`)
        .join('\n'),
    );
  } finally {
    clearInterval(timer);
    progress.stop();
    removeInterrupt();
  }
  return undefined;
}

export const groupStartCommand = defineCommand({
  about:
    'Each service starts once the services of the group that it depends on are ready. Services that ' +
    'already run are left alone. After a failure no further service starts; those already started keep ' +
    'running.',
  args: [{ syntax: '<name>', about: 'the group', completes: 'group' }],
  options: {
    timeout: durationOption('--timeout <time>', 'time each service has to become ready; default: its own'),
    ...SCOPE_OPTIONS,
  },
  run: (context, [given = ''], { timeout, ...choice }) =>
    startWholeGroup(context, {
      given,
      choice,
      verb: 'starting',
      start: (client, name) => client.startGroup(name, { timeout }),
    }),
});

export const groupRestartCommand = defineCommand({
  about:
    'Stops all services of the group, each once those that depend on it have ended, then starts all of them ' +
    'as `berth group start` does.',
  args: [{ syntax: '<name>', about: 'the group', completes: 'group' }],
  options: {
    timeout: durationOption('--timeout <time>', 'time each service has to become ready; default: its own'),
    grace: durationOption('--grace <time>', 'time each service has to end; default: its own'),
    ...SCOPE_OPTIONS,
  },
  run: (context, [given = ''], { timeout, grace, ...choice }) =>
    startWholeGroup(context, {
      given,
      choice,
      verb: 'restarting',
      start: (client, name) => client.restartGroup(name, { timeout, grace }),
    }),
});

export const groupStopCommand = defineCommand({
  about: 'Each service stops once the services that depend on it have ended.',
  args: [{ syntax: '<name>', about: 'the group', completes: 'group' }],
  options: {
    grace: durationOption('--grace <time>', 'time each service has to end; default: its own'),
    ...SCOPE_OPTIONS,
  },
  run: async (context, [given = ''], { grace, ...choice }) => {
    const client = await context.client();
    const { group, label } = await stackScope(client, choice);
    const name = group(given);
    const progress = createProgress(context.out);
    const removeInterrupt = context.onInterrupt(() => progress.stop());
    progress.begin(name, 'stopping');
    try {
      const answer = await client.stopGroup(name, { grace });
      progress.stop();
      context.out.record(answer, () =>
        answer.services.map((one) => `${label(one.name)} is ${one.status}`).join('\n'),
      );
    } finally {
      progress.stop();
      removeInterrupt();
    }
  },
});
