// The replicas of a process of process-compose: a service for each.
import { portInCommand } from './command_port.ts';
import type { ImportedCheck, ImportedService } from './imported_project.ts';

/** What process-compose adds to the environment of one replica. */
export type Replica = ReadonlyMap<string, string>;

const isVariableIn = (command: string, name: string): boolean => new RegExp(`\\b${name}\\b`).test(command);

/** For the replica `index` of `count` of the process `key`: the variables that it needs. */
export function replicaOf(command: string, at: { key: string; index: number; count: number }): Replica {
  const all = [
    ['PC_PROC_NAME', at.key],
    ['PC_REPLICA_NUM', String(at.index)],
  ] as const;
  return new Map(
    all.filter(([name]) => isVariableIn(command, name) || (at.count > 1 && name === 'PC_REPLICA_NUM')),
  );
}

/** `command` with the number of `replica` filled in, to find the port that it names. */
export const withReplica = (command: string, replica: Replica): string =>
  command.replace(
    /\$+(?:PC_REPLICA_NUM\b|\{PC_REPLICA_NUM\})/g,
    (whole) => replica.get('PC_REPLICA_NUM') ?? whole,
  );

const LOCAL_HOSTS = ['localhost', '127.0.0.1', '0.0.0.0', '[::1]'];

/** The URL `url` as a path if it is on the port `port` of this machine. */
function pathOnPort(url: string, port: number | string): string {
  const origin = LOCAL_HOSTS.map((host) => `http://${host}:${port}`).find((one) => url.startsWith(`${one}/`));
  return origin === undefined ? url : url.slice(origin.length);
}

const withPath = (check: ImportedCheck, port: number | string): ImportedCheck =>
  check.http === undefined ? check : { ...check, http: pathOnPort(check.http, port) };

/** `service` with a free port in place of `port`. */
function withFreePort(service: ImportedService, port: number | string): ImportedService {
  const { ready, live, env } = service;
  const rows = [...(env ?? [])].filter(([name]) => name !== 'PORT');
  return {
    ...service,
    port: 'auto',
    env: rows.length > 0 ? new Map(rows) : undefined,
    ready: typeof ready === 'string' ? pathOnPort(ready, port) : ready && withPath(ready, port),
    live: live && withPath(live, port),
  };
}

/** `replicas` of a process with a free port each in place of one that they would share, and with a note. */
export function withOwnPorts(replicas: readonly ImportedService[], notes: string[]): ImportedService[] {
  const [{ name, port, cmd } = { name: '', port: null, cmd: '' }] = replicas;
  const isShared = new Set(replicas.map((one) => one.port)).size < replicas.length;
  if (!isShared || port === null || port === 'auto') return [...replicas];
  const isNamed = portInCommand(cmd)?.port === port;
  const hint = isNamed ? ', which its command has to use' : '';
  notes.push(`${name}: its replicas cannot share port ${port}; each has a free one in $PORT${hint}`);
  return replicas.map((service) => withFreePort(service, port));
}
