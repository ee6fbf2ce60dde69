// Logs of services and of agents.

import { logs } from '../../api/logs.ts';
import type { LogEntry } from '../../api/logs_shapes.ts';
import type { Operation, QueryInputOf } from '../../api/operation.ts';
import type { QueryInput } from '../../api/query.ts';
import type { followedLogs, logTail } from '../../api/query_fields.ts';
import type { LogsQuery } from '../../protocol/logs.ts';
import { type CallOptions, call, type Endpoint, sendRequest } from '../api_call.ts';
import { type SseFrame, type StreamOptions, sseFrames } from '../event_stream.ts';

export type LogOptions = CallOptions & Partial<LogsQuery>;
export type LogFollowOptions = StreamOptions & Partial<LogsQuery>;

/** The query of a log read or a log stream. */
export const logsQuery = ({
  lines,
  stream,
  timestamps,
  raw,
}: Partial<LogsQuery>): QueryInput<typeof logTail> & QueryInput<typeof followedLogs> => ({
  lines,
  stream,
  timestamps,
  raw,
});

/** The frames of a log stream. After a disconnect, it resumes after the last one, whatever `lines` is. */
function logFrames(
  endpoint: Endpoint,
  operation: Operation,
  name: string,
  query: QueryInput<typeof followedLogs>,
  options: StreamOptions,
): AsyncGenerator<SseFrame> {
  const open = (lastEventId: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, operation, { name, query, signal }, { lastEventId });
  return sseFrames(open, null, options);
}

/** The last `lines` of the log of `name`, then every new one. Reconnects after a disconnect. */
export async function* followLog(
  endpoint: Endpoint,
  operation: Operation,
  name: string,
  options: LogFollowOptions,
): AsyncGenerator<string> {
  for await (const frame of logFrames(endpoint, operation, name, logsQuery(options), options)) {
    if (frame.event !== 'line') continue;
    const { line }: { line: string } = JSON.parse(frame.data);
    yield line;
  }
}

/** Yields when `name` has printed something, whether or not it ends a line. Reconnects after a disconnect. */
export async function* followGrowth(
  endpoint: Endpoint,
  operation: Operation,
  name: string,
  options: StreamOptions,
): AsyncGenerator<void> {
  for await (const { event } of logFrames(endpoint, operation, name, { growth: true }, options))
    if (event === 'growth') yield;
}

/** Selects lines, and their number: docs/reference.md "Logs of many services". */
export type LogSearchOptions = CallOptions & QueryInputOf<typeof logs.search>;

/** The same for a stream; `lastEventId` is the id of the entry after which to continue. */
export interface LogStreamOptions extends StreamOptions, QueryInputOf<typeof logs.follow> {
  /** Called when `bytes` of the log of `name` were deleted by rotation before the stream had read them. */
  onLost?: (lost: { name: string; bytes: number }) => void;
}

/** An entry with its id, from which a later stream can continue. */
export type StreamedLogEntry = LogEntry & { id: string };

async function* streamLogs(endpoint: Endpoint, options: LogStreamOptions): AsyncGenerator<StreamedLogEntry> {
  const {
    signal: _signal,
    onState: _onState,
    reconnect: _reconnect,
    onLost,
    lastEventId,
    ...query
  } = options;
  const open = (after: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, logs.follow, { query, signal }, { lastEventId: after });
  for await (const { id, event, data } of sseFrames(open, lastEventId ?? null, options)) {
    if (event === 'end') return;
    if (event === 'lost') onLost?.(JSON.parse(data) as { name: string; bytes: number });
    if (event === 'line' || event === 'run')
      yield Object.assign(JSON.parse(data) as LogEntry, { id: id ?? '' });
  }
}

/** The methods of the daemon at `endpoint` for the logs of many services. */
export const logMethods = (endpoint: Endpoint) => ({
  /** A page of the newest matching lines; `before` in the answer leads to older ones. */
  searchLogs: ({ signal, ...query }: LogSearchOptions = {}) => call(endpoint, logs.search, { query, signal }),
  /** The last matching lines of each service, then every new one. Reconnects after a disconnect. */
  streamLogs: (options: LogStreamOptions = {}) => streamLogs(endpoint, options),
});
