// Tools that read logs and events, and that wait for them.
import { z } from '../../adapters/zod.ts';
import { LogPage } from '../../api/logs_shapes.ts';
import { Logs } from '../../api/services_shapes.ts';
import type { PastEvent } from '../../client/records.ts';
import { EVENT_TYPES, type EventType } from '../../protocol/events.ts';
import { LOG_LEVELS } from '../../protocol/logs.ts';
import { SERVICE_STATUSES } from '../../protocol/service.ts';
import { EVENTS, LOGS } from '../../settings/limits.ts';
import { durationMs, linesOf, nameField, seconds } from '../fields.ts';
import { defineTool, inputShape } from '../tool.ts';
import { waitFor } from './wait_for.ts';

const logs = defineTool({
  name: 'logs',
  title: 'Last lines of a service',
  description:
    'The last lines that a service or an agent has printed, without control sequences. To find something ' +
    'in all that is kept, use `logs_search`; to wait for a line, `wait_for`.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['getServiceLogs'],
  input: inputShape({
    name: nameField,
    lines: z.int().min(1).max(LOGS.maxLines).optional().describe('How many; default 50'),
    stream: z.enum(['stdout', 'stderr']).optional().describe('Only this output'),
    timestamps: z.boolean().optional().describe('true: the time before each line'),
  }),
  output: Logs,
  run: ({ client, signal }, { name, lines = 50, stream = null, timestamps = false }) =>
    client.logs(name, { lines, stream, timestamps, signal }),
  text: ({ name, lines }) => linesOf(lines, String, `${name} has printed nothing.`),
});

const logsSearch = defineTool({
  name: 'logs_search',
  title: 'Search logs',
  description:
    'Lines of all services, or of some, merged by time, from everything that is kept of their logs. ' +
    'Without q, regex and level it gives the newest lines. `before` of the answer leads to older ones.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['searchLogs'],
  input: inputShape({
    names: z.array(z.string()).optional().describe('Only these services; default: all but agents'),
    stack: z.string().optional().describe('Only services of this stack'),
    q: z.string().optional().describe('Only lines with this text, in any case'),
    regex: z.string().optional().describe('Only lines in which this RE2 expression matches'),
    level: z.enum(LOG_LEVELS).optional().describe('Only lines of this level or a more severe one'),
    context: z.int().min(0).max(LOGS.maxContextLines).optional().describe('Lines around each that is found'),
    since: z.string().optional().describe('Not before: RFC 3339, or back from now such as 15m'),
    until: z.string().optional().describe('Not after, as since'),
    run: z.string().optional().describe('Only one run of each: `last`, 2 for the one before it, or an id'),
    limit: z.int().min(1).max(LOGS.maxLines).optional().describe('How many of the newest; default 100'),
    before: z.string().optional().describe('`before` of an earlier answer'),
  }),
  output: LogPage,
  run: ({ client, signal }, { limit = 100, ...query }) => client.searchLogs({ limit, ...query, signal }),
  text: ({ lines, before }) =>
    linesOf(
      lines,
      (one) => `${one.at} ${one.name} ${'text' in one ? one.text : `(${one.event})`}`,
      'No line fits.',
    ) + (before === null ? '' : '\nThere are older lines: pass `before`.'),
});

/** An event without the types of its data, which would make the schema long. */
const EventRow = z.object({
  id: z.int().min(1),
  type: z.enum(EVENT_TYPES),
  data: z.record(z.string(), z.unknown()),
});

const eventRow = ({ id, type, data }: PastEvent): z.infer<typeof EventRow> => ({
  id,
  type: type as EventType,
  data: { ...data },
});

const events = defineTool({
  name: 'events',
  title: 'Past events',
  description:
    'What has happened to services and agents: started, stopped, crashed, and so on. Pass the last id as ' +
    '`since` to get only what is new. To wait for one, use `wait_for`.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['listPastEvents'],
  input: inputShape({
    types: z.array(z.enum(EVENT_TYPES)).optional().describe('Only these types'),
    names: z.array(z.string()).optional().describe('Only events of these services'),
    since: z.int().min(0).optional().describe('Only events with a greater id'),
    limit: z.int().min(1).max(EVENTS.retained).optional().describe('How many; default 50'),
  }),
  output: z.object({
    events: z.array(EventRow),
    last: z.int().nullable().describe('The id of the last one, for `since`'),
  }),
  run: async ({ client, signal }, { types = [], names = [], since, limit = 50 }) => {
    const found = await client.history({ types, names, since, limit, signal });
    return { events: found.map(eventRow), last: found.at(-1)?.id ?? null };
  },
  text: ({ events: found }) =>
    linesOf(
      found,
      ({ id, type, data }) => `${id} ${type} ${JSON.stringify(data)}`,
      'There is no such event.',
    ),
});

const wait = defineTool({
  name: 'wait_for',
  title: 'Wait for a status, a line or an event',
  description:
    'Waits until a service has a status, prints a line, or something happens, and answers at once if the ' +
    'status is reached or the line is in the current run already. Exactly one of status, text, regex and ' +
    'event. Not met in time: met is false; `explain` says why.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['getService', 'listPastEvents', 'followEvents', 'followLogs'],
  input: inputShape({
    name: z.string().min(1).optional().describe('The service or agent; only an event may be of any'),
    status: z.enum(SERVICE_STATUSES).optional().describe('Until it has this status, such as running'),
    text: z.string().min(1).optional().describe('Until it prints a line with this text, in any case'),
    regex: z
      .string()
      .min(1)
      .optional()
      .describe('Until it prints a line in which this RE2 expression matches'),
    event: z.enum(EVENT_TYPES).optional().describe('Until this happens, such as service.crashed'),
    since: z.int().min(0).optional().describe('With event: also matches a past event with a greater id'),
    timeout: durationMs('How long to wait; default 30000'),
  }),
  output: z.object({
    met: z.boolean(),
    waitedMs: z.int().min(0),
    status: z.enum(SERVICE_STATUSES).nullable().describe('Of the service at the end'),
    line: z.string().nullable().describe('The line that was waited for'),
    event: EventRow.nullable().describe('The event that was waited for'),
  }),
  run: waitFor,
  text: ({ met, waitedMs, status, line, event }, { name = 'any service' }) => {
    const state = status === null ? '' : `: ${name} is ${status}`;
    if (!met) return `Not within ${seconds(waitedMs)}${state}. Wait again, or ask \`explain\`.`;
    if (line !== null) return line;
    if (event) return `${event.id} ${event.type} ${JSON.stringify(event.data)}`;
    return `${name} is ${status} after ${seconds(waitedMs)}.`;
  },
  progress: async (_call, { name = 'any service', status, text, regex, event }) =>
    `waiting for ${status ?? event ?? JSON.stringify(text ?? regex)} of ${name}`,
});

export const WATCHING_TOOLS = [logs, logsSearch, events, wait];
