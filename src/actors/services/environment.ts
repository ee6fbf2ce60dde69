// The environment of a child process: docs/reference.md "Environment of a process".
import type { ServiceSpec } from '../../protocol/service.ts';

type Rows = [key: string, value: string][];

/** What belongs to the daemon itself, to npm that started it, or to the one who manages it. */
const OURS = /^(?:BERTH_|npm_|NODE_CHANNEL_|LISTEN_)|^(?:INIT_CWD|NOTIFY_SOCKET)$/;

/** The daemon's own environment without what no child may see: made once, the base of every child's. */
export function inherited(env: Readonly<Record<string, string | undefined>>): Rows {
  return Object.entries(env).filter(
    (row): row is [string, string] => row[1] !== undefined && !OURS.test(row[0]),
  );
}

/** The whole environment of one run: later rows win, and nothing overrides BERTH_SERVICE and BERTH_RUN. */
export function childEnvironment(base: Rows, spec: ServiceSpec, run: string): Rows {
  const terminal: Rows = [
    ['HOST', '127.0.0.1'],
    ['PYTHONUNBUFFERED', '1'],
    ['TERM', 'xterm-256color'],
  ];
  const rows = new Map<string, string>([
    ...base,
    ['PORT', String(spec.port)],
    ...(spec.agent ? terminal : []),
    ...spec.env,
    ['BERTH_SERVICE', spec.name],
    ['BERTH_RUN', run],
  ]);
  return [...rows];
}
