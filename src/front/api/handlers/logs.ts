// Logs of services and of agents: the last lines as JSON, and a stream of new lines.

import type { QueryValues } from '../../../api/query.ts';
import type { followedLogs, logTail } from '../../../api/query_fields.ts';
import type { LogsQuery } from '../../../protocol/logs.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import { LOGS } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';
import type { StreamContext } from '../handler.ts';
import { serviceRef } from './service_lookup.ts';

type LogsInput = QueryValues<typeof logTail>;

const CLOSING_BRACE = Buffer.from('}');

const logsQuery = ({ lines, stream, timestamps, raw }: LogsInput, defaultLines: number): LogsQuery => ({
  lines: lines ?? defaultLines,
  stream,
  timestamps: timestamps ?? false,
  raw: raw ?? false,
});

/** The answer with the last lines of a log. The owner returns the lines as JSON. */
export async function readLogs(app: AppContext, spec: SpecRow, query: LogsInput): Promise<Uint8Array> {
  const lines = await serviceRef(app, spec.name).ask('logs', logsQuery(query, LOGS.defaultLines));
  const port = (app.views.state(spec.name)?.process ?? spec).port;
  const head = JSON.stringify({ name: spec.name, port }).slice(0, -1);
  return Buffer.concat([Buffer.from(`${head},"lines":`), lines, CLOSING_BRACE]);
}

/** Follows the log of a service. Only rejects before the stream is open. */
export const streamLogs = ({
  app,
  key: name,
  query,
  lastEventId,
  open,
}: StreamContext<QueryValues<typeof followedLogs>>): Promise<void> =>
  app.logs.follow({
    name,
    service: serviceRef(app, name),
    query: logsQuery(query, 0),
    growth: query.growth ?? false,
    lastEventId,
    isRunning: () => app.views.state(name)?.process != null,
    open,
  });
