// Logs of services and of agents.

import type { Operation } from '../../api/operation.ts';
import type { QueryInput } from '../../api/query.ts';
import type { followedLogs, logs } from '../../api/query_fields.ts';
import type { LogsQuery } from '../../protocol/service.ts';
import { type CallOptions, type Endpoint, sendRequest } from '../api_call.ts';
import { type StreamOptions, sseFrames } from '../event_stream.ts';

export type LogOptions = CallOptions & Partial<LogsQuery>;
export type LogFollowOptions = StreamOptions & Partial<LogsQuery>;

/** The query of a log read or a log stream. */
export const logsQuery = ({
  lines,
  stream,
  timestamps,
  raw,
}: Partial<LogsQuery>): QueryInput<typeof logs> & QueryInput<typeof followedLogs> => ({
  lines,
  stream,
  timestamps,
  raw,
});

/** The last `lines` of the log of `name`, then every new one. Reconnects after a disconnect. */
export async function* followLog(
  endpoint: Endpoint,
  operation: Operation,
  name: string,
  options: LogFollowOptions,
): AsyncGenerator<string> {
  const query = logsQuery(options);
  // After a disconnect, resumes after the last line, whatever `lines` is.
  const open = (lastEventId: string | null, signal: AbortSignal) =>
    sendRequest(endpoint, operation, { name, query, signal }, { lastEventId });
  for await (const frame of sseFrames(open, null, options)) {
    if (frame.event !== 'line') continue;
    const { line }: { line: string } = JSON.parse(frame.data);
    yield line;
  }
}
