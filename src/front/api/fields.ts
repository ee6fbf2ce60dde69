// The query fields that rows have in common: what they take and what the document says of them.

import { EVENT_TYPES } from '../../protocol/events.ts';
import { EVENTS, HTTP, LOGS } from '../../settings/limits.ts';

const milliseconds = (summary: string) =>
  ({ kind: 'integer', least: 0, most: HTTP.maxQueryDurationMs, summary }) as const;
export const timeout = milliseconds(
  'How long to wait until it is ready (ms); the service says the default, 30000',
);
export const grace = milliseconds(
  'How long it has after the stop signal (ms); the service says the default, 5000',
);
export const wait = { kind: 'flag', summary: 'false: answer 202 as soon as the process is there' } as const;

const rawFlag = { kind: 'flag', summary: 'true: lines as they came, control sequences and all' } as const;
const output = { kind: 'word', of: ['stdout', 'stderr'], summary: 'Only this output' } as const;
export const logs = {
  lines: {
    kind: 'integer',
    least: 1,
    most: LOGS.maxLines,
    clamp: true,
    summary: `How many of the last lines; default ${LOGS.defaultLines}, at most ${LOGS.maxLines}`,
  },
  stream: output,
  timestamps: { kind: 'flag', summary: 'true: the time before each line' },
  raw: rawFlag,
} as const;
export const follow = {
  ...logs,
  lines: { ...logs.lines, least: 0, summary: 'How many of the last lines come first; default 0' },
} as const;

export const types = { kind: 'list', of: EVENT_TYPES, summary: 'Only events of these types' } as const;
export const names = { kind: 'list', summary: 'Only events of these services' } as const;
export const since = {
  kind: 'integer',
  least: 0,
  most: Number.MAX_SAFE_INTEGER,
  summary: 'Only events with a greater id',
} as const;
export const limit = {
  kind: 'integer',
  least: 1,
  most: EVENTS.retained,
  clamp: true,
  summary: `How many: the newest, or with since the first after it; default ${HTTP.defaultHistoryEvents}, at most ${EVENTS.retained}`,
} as const;
