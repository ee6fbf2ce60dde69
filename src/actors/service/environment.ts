// The environment of a child process: docs/reference.md "Environment of a process".
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import { CODING_AGENTS, type CodingAgent } from '../../protocol/coding_agents.ts';
import type { ServiceSpec } from '../../protocol/service.ts';

/** Variables of the daemon itself, of the npm that started it, or of its service manager. */
const DAEMON_VARIABLES = /^(?:BERTH_|npm_|NODE_CHANNEL_|LISTEN_)|^(?:INIT_CWD|NOTIFY_SOCKET)$/;

/**
 * The daemon's own environment without variables that children must not see. Computed once, as the base of
 * every child.
 */
export function inheritedEnvironment(env: Readonly<Record<string, string | undefined>>): EnvironmentRows {
  return Object.entries(env).filter(
    (row): row is [string, string] => row[1] !== undefined && !DAEMON_VARIABLES.test(row[0]),
  );
}

/** Without a port of its own, a service keeps the PORT of its base environment, if any. */
const portRows = (port: number | null): EnvironmentRows => (port === null ? [] : [['PORT', String(port)]]);

const PROGRAMS: readonly CodingAgent[] = Object.values(CODING_AGENTS);
const SHELL_VARIABLES = new Set(PROGRAMS.map(({ hooks }) => hooks?.shellVariable));

/** Without what tells a hook that its program is nested, for an agent that another agent has started. */
const notNested = (base: EnvironmentRows): EnvironmentRows =>
  base.filter(([key]) => !SHELL_VARIABLES.has(key));

/** The complete environment of one run. Later rows win, and nothing overrides BERTH_SERVICE and BERTH_RUN. */
export function childEnvironment(
  base: EnvironmentRows,
  spec: ServiceSpec,
  run: string,
  neighbours: EnvironmentRows = [],
): EnvironmentRows {
  const terminal: EnvironmentRows = [
    ['HOST', '127.0.0.1'],
    ['PYTHONUNBUFFERED', '1'],
    ['TERM', 'xterm-256color'],
  ];
  const rows = new Map<string, string>([
    ...(spec.agent ? notNested(base) : base),
    ...neighbours,
    ...portRows(spec.port),
    ...(spec.agent ? terminal : []),
    ...spec.env,
    ['BERTH_SERVICE', spec.name],
    ['BERTH_RUN', run],
  ]);
  return [...rows];
}

/** The environment of a command. `base` is that of the service it runs beside, if any. `own` wins. */
export const commandEnvironment = (
  base: EnvironmentRows,
  own: EnvironmentRows,
  run: string,
): EnvironmentRows => [...new Map([...base, ['TERM', 'xterm-256color'], ...own, ['BERTH_RUN', run]])];
