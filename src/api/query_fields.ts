// Query fields shared by operations of several resources.
import { HTTP, LOGS } from '../settings/limits.ts';

const milliseconds = (summary: string) =>
  ({ kind: 'integer', least: 0, most: HTTP.maxQueryDurationMs, summary }) as const;

export const timeout = milliseconds(
  'How long to wait until it is ready (ms); the service says the default, 30000',
);
export const grace = milliseconds(
  'How long it has after the stop signal (ms); the service says the default, 5000',
);

/** Of calls that last as long as a start or a stop. */
export const waitForEnd = {
  kind: 'flag',
  summary: `false: answer 202 with the present state if it has not ended within ${HTTP.unawaitedMs} ms`,
} as const;

/** The query of a proof of the server. */
export const proof = {
  nonce: { kind: 'word', summary: 'Random, 22 to 86 characters of base64url; required' },
  key: { kind: 'word', summary: 'The id of the key; default `token`' },
} as const;

/** The query of a log read. */
export const logTail = {
  lines: {
    kind: 'integer',
    least: 1,
    most: LOGS.maxLines,
    clamp: true,
    summary: `How many of the last lines; default ${LOGS.defaultLines}, at most ${LOGS.maxLines}`,
  },
  stream: { kind: 'word', of: ['stdout', 'stderr'], summary: 'Only this output' },
  timestamps: { kind: 'flag', summary: 'true: the time before each line' },
  raw: { kind: 'flag', summary: 'true: lines as they came, control sequences and all' },
} as const;

/** The query of a log stream. */
export const followedLogs = {
  ...logTail,
  lines: { ...logTail.lines, least: 0, summary: 'How many of the last lines come first; default 0' },
  growth: {
    kind: 'flag',
    summary: 'true: in place of lines, an event `growth` for output, whether or not it ends a line',
  },
} as const;
