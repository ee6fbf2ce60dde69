// The operations of the logs of many services: docs/reference.md "Logs of many services".
import { LOG_LEVELS } from '../protocol/logs.ts';
import { LOGS } from '../settings/limits.ts';
import { operationsOf } from './operation.ts';

const operation = operationsOf('logs');

/** The query fields that select services and their lines. */
const selection = {
  names: { kind: 'list', summary: 'Only these services; without it, all but agents' },
  stack: { kind: 'word', summary: 'Only services of this stack' },
  agents: { kind: 'flag', summary: 'true: agents too; false: none, even if named' },
  since: { kind: 'word', summary: 'Not before this time: RFC 3339, or a duration back from now such as 15m' },
  until: { kind: 'word', summary: 'Not after this time, as since' },
  q: { kind: 'word', summary: 'Only lines with this text, in any case' },
  regex: { kind: 'word', summary: 'Only lines in which this matches, an expression in the syntax of RE2' },
  level: { kind: 'word', of: LOG_LEVELS, summary: 'Only lines that name this level or a more severe one' },
  context: {
    kind: 'integer',
    least: 0,
    most: LOGS.maxContextLines,
    summary: 'Lines before and after each line that q, regex or level finds, which come with it; default 0',
  },
  stream: { kind: 'word', of: ['stdout', 'stderr'], summary: 'Only this output' },
  run: {
    kind: 'word',
    summary: 'Only one run of each: last, a number that counts back from it (1), or an id',
  },
  ansi: { kind: 'flag', summary: 'true: texts keep their colours, and no other control sequence' },
} as const;

export const logs = {
  search: operation({
    id: 'searchLogs',
    kind: 'call',
    method: 'GET',
    path: '/v1/logs',
    agentRight: 'part',
    summary: 'Lines of many services in time order, from all kept logs',
    query: {
      ...selection,
      limit: {
        kind: 'integer',
        least: 1,
        most: LOGS.maxLines,
        clamp: true,
        summary: `How many of the newest lines; default ${LOGS.defaultPageLines}, at most ${LOGS.maxLines}`,
      },
      before: { kind: 'word', summary: 'The cursor of a response: only lines before those of that response' },
    },
    answer: 'LogPage',
    errors: ['unknown_service', 'unknown_stack'],
  }),
  follow: operation({
    id: 'followLogs',
    kind: 'stream',
    method: 'GET',
    path: '/v1/logs/stream',
    agentRight: 'part',
    summary: 'Lines of many services as they are written; the header Last-Event-ID replays missed ones',
    query: {
      ...selection,
      limit: {
        kind: 'integer',
        least: 0,
        most: LOGS.maxTailLines,
        summary:
          'How many of the last lines of each service come first; default 0, or with since all since then',
      },
      follow: { kind: 'flag', summary: 'false: the stream ends with what there is now; default true' },
      lastEventId: { kind: 'word', summary: 'As the header, which takes precedence' },
    },
    answer: 'LogEntry',
    errors: ['unknown_service', 'unknown_stack'],
  }),
};
