// berth events
import type { DaemonEvent, EventData } from '../../client/records.ts';
import { formatDuration } from '../../project/duration.ts';
import { EVENT_TYPES, type EventType, LIFECYCLE_EVENT_TYPES } from '../../protocol/events.ts';
import { defineCommand, flagOption, integerOption, listOption } from '../kit/command.ts';
import { type CommandContext, onStreamState } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { atUrl, describeExit, formatClockTime, formatCpu, formatMemory } from '../kit/format.ts';
import { safeJson, sanitizeLine } from '../kit/sanitize.ts';

/** The text of an event, printed after its type. */
const EVENT_TEXTS: { [T in keyof EventData]: (data: EventData[T]) => string } = {
  'service.registered': ({ name, port, group }) =>
    `${name}${port === null ? '' : ` on port ${port}`}${group ? ` in group ${group}` : ''}`,
  'service.started': ({ name, pid, url }) => `${name} is running${atUrl(url)} (pid ${pid})`,
  'service.stopped': ({ name, ...end }) => `${name} has ended (${describeExit(end) || 'not known how'})`,
  'service.crashed': ({ name, ...end }) => `${name} has crashed (${describeExit(end) || 'not known how'})`,
  'service.completed': ({ name, ms }) => `${name} has completed in ${formatDuration(ms)}`,
  'service.unhealthy': ({ name, check, error }) => `${name} fails its live-check ${check}: ${error}`,
  'service.stats': ({ name, cpu, rssMB }) => `${name} uses ${formatCpu(cpu)} CPU, ${formatMemory(rssMB)}`,
  'service.removed': ({ name }) => `${name} is removed`,
  'service.changed': ({ name, paths }) => `files of ${name} have changed: ${paths.join(', ')}`,
  'service.slept': ({ name }) => `${name} sleeps`,
  'service.woke': ({ name, ms }) => `${name} was woken in ${formatDuration(ms)}`,
  'agent.forced': ({ name, agent, operation }) => `a person did ${operation} to ${name} within ${agent}`,
  'agent.state': ({ name, state, previous }) => `${name} is ${state} (was ${previous})`,
  'agent.slept': ({ name }) => `${name} sleeps`,
  'agent.woke': ({ name, ms }) => `${name} was woken in ${formatDuration(ms)}`,
  'port.conflict': ({ port, claimedBy, holder }) => `${claimedBy} wants port ${port}, which ${holder} has`,
  'cluster.refused': ({ name }) => `the cluster ${name} does not accept its account any more`,
  'cluster.accepted': ({ name }) => `the cluster ${name} accepts its account again`,
  'cluster.expiring': ({ name, expiresAt }) => `the credentials of the cluster ${name} end at ${expiresAt}`,
  'stream.reset': ({ oldest }) => `events before ${oldest} are no longer kept`,
};
const ALERT_TYPES: ReadonlySet<string> = new Set([
  'service.crashed',
  'service.unhealthy',
  'agent.forced',
  'port.conflict',
  'cluster.refused',
  'cluster.expiring',
  'stream.reset',
]);

function eventText<T extends keyof EventData>(type: T, data: EventData[T]): string {
  // A newer daemon may send types that this program does not know.
  return Object.hasOwn(EVENT_TEXTS, type) ? EVENT_TEXTS[type](data) : JSON.stringify(data);
}

function printEvent(context: CommandContext, event: DaemonEvent): void {
  const { out } = context;
  if (out.isData) {
    out.line(safeJson(event));
    return;
  }
  const { type, data } = event;
  const padded = type.padEnd('service.registered'.length);
  const title = ALERT_TYPES.has(type) ? out.style('red', padded) : padded;
  const time = out.style('dim', formatClockTime(data.at) || '--:--:--');
  out.line(`${time}  ${title}  ${sanitizeLine(eventText(type, data))}`);
}

/**
 * The event types that `given` names, in full or by one part such as `crashed`. Throws a UsageError for an
 * unknown one.
 */
function matchingTypes(given: readonly string[]): EventType[] {
  return given.flatMap((word) => {
    const found = EVENT_TYPES.filter((type) => type === word || type.split('.').includes(word));
    if (found.length > 0) return found;
    throw new UsageError(`${word} is no type of event`, `There are ${EVENT_TYPES.join(', ')}.`);
  });
}

export const eventsCommand = defineCommand({
  about:
    'Shows events until Ctrl-C, across restarts of the daemon. Leaves out the statistics of each running ' +
    'service, sent every 2 s, unless --type names them.',
  args: [{ syntax: '[names...]', about: 'only events of these services', completes: 'service' }],
  options: {
    type: listOption('--type <types>', 'only these types, such as crashed or service.started', EVENT_TYPES),
    since: integerOption('--since-id <id>', 'first replay the events after this one', [
      0,
      Number.MAX_SAFE_INTEGER,
    ]),
    past: flagOption('--past', 'show the stored events and end'),
  },
  examples: [
    ['berth events --type crashed', 'every crash from now on'],
    ['berth events --past web', 'the history of web'],
  ],
  run: async (context, names, { type, since, past }) => {
    const client = await context.client();
    const types = type.length > 0 ? matchingTypes(type) : LIFECYCLE_EVENT_TYPES;
    if (past) {
      const rows = await client.history({
        types,
        names,
        limit: 1024,
        since,
      });
      for (const event of rows) printEvent(context, event);
      return;
    }
    const stream = client.events({
      types,
      names,
      detail: true,
      lastEventId: since,
      onState: onStreamState(context),
    });
    for await (const event of stream) printEvent(context, event);
  },
});
