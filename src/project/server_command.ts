// The part of a shell command that runs a server. The rest prepares it, or talks to other servers.
import { programOf } from '../protocol/port_protocol.ts';

/** Programs that talk to servers, of which they name the ports. */
const CLIENTS: ReadonlySet<string> = new Set([
  ...['psql', 'pgcli', 'pg_isready', 'pg_dump', 'pg_dumpall', 'pg_restore', 'pgbench', 'createdb'],
  ...['dropdb', 'createuser', 'mysql', 'mycli', 'mysqladmin', 'mysqldump', 'mariadb', 'mariadb-admin'],
  ...['mariadb-dump', 'mongo', 'mongosh', 'mongodump', 'mongorestore', 'redis-cli', 'redis-benchmark'],
  ...['valkey-cli', 'clickhouse-client', 'cqlsh', 'sqlcmd', 'mosquitto_pub', 'mosquitto_sub', 'kcat'],
  ...['ldapsearch', 'ssh', 'autossh', 'sshpass', 'scp', 'sftp', 'rsync', 'mosh', 'ssh-keyscan', 'adb'],
  ...['curl', 'wget', 'http', 'https', 'xh', 'grpcurl', 'websocat', 'wscat', 'telnet', 'nc', 'ncat'],
  ...['netcat', 'socat', 'nmap', 'ab', 'wrk', 'hey', 'k6', 'autocannon', 'open', 'xdg-open', 'stripe'],
  ...['cloudflared', 'ngrok', 'lt', 'localtunnel', 'smee', 'hookdeck', 'tailscale', 'zrok', 'bore'],
  ...['wait-on', 'wait-port', 'wait-for', 'wait-for.sh', 'wait-for-it', 'wait-for-it.sh', 'kill-port'],
]);

/** What commands do besides: with files and processes, or within the shell. */
const HELPERS: ReadonlySet<string> = new Set([
  ...['mkdir', 'rm', 'cp', 'mv', 'ln', 'touch', 'chmod', 'chown', 'install', 'tar', 'cat', 'ls', 'tee'],
  ...['tail', 'grep', 'sed', 'ps', 'pgrep', 'pkill', 'kill', 'killall', 'fuser', 'lsof', 'echo'],
  ...['printf', 'sleep', 'cd', 'export', 'set', 'unset', 'source', '.', 'test', '[', '[[', ':', 'true'],
  ...['false', 'trap', 'wait', 'exit', 'return', 'break', 'continue', 'fi', 'done', 'esac', 'for'],
  ...['case', ''],
]);

/** What comes before a quoted argument that is a command. */
const RUNS_QUOTED = /\b(?:ba|da|k|z|)sh\s+(?:-\S+\s+|pipefail\s+)*-\w*c\s*$|\bconcurrently\b/;

const QUOTED = /"((?:\\.|[^"\\])*)"|'([^']*)'/gs;
const SUBSTITUTION = /\$\([^()]*\)|`[^`]*`/g;
/** What `wait-for-it db:5432 -- server` runs is a further step. */
const AFTER_WAIT = /(?<=\bwait-for\S*\s[^;&|\n]*)\s--\s/g;
/** Around a group of commands. */
const BRACKET = /(?<=^|[\s;&|(])[({]|[)}](?=$|[\s;&|)])/gm;

/** `command` with quoted commands in the open, and every other quoted text as one word without separators. */
const unquoted = (command: string): string =>
  command.replace(QUOTED, (_whole, double: string | undefined, single: string | undefined, at: number) => {
    const text = double ?? single ?? '';
    return RUNS_QUOTED.test(command.slice(0, at)) ? ` & ${text} & ` : text.replace(/[\s;&|#]+/g, ',');
  });

/** Each step of `command`, as the commands that run side by side in it. */
function stepsOf(command: string): string[][] {
  const text = unquoted(command.replace(/\\\n/g, ' '))
    .replace(SUBSTITUTION, '_')
    .replace(/(?<=^|\s)#.*$/gm, '')
    .replace(/[<>]&|&>/g, ' > ')
    .replace(AFTER_WAIT, ' && ')
    .replace(BRACKET, ' ');
  return text.split(/&&|[;\n]/).map((step) => step.split(/[|&]+/).map((one) => one.trim()));
}

/** Docker runs a client in a container. */
const EXEC_IN_CONTAINER = /^(?:docker|docker-compose|podman)\s(?:.*\s)?exec\s/;

const isClient = (one: string): boolean => CLIENTS.has(programOf(one)) || EXEC_IN_CONTAINER.test(one);
const isServer = (one: string): boolean => !isClient(one) && !HELPERS.has(programOf(one));

/**
 * The commands in `command` that may be its server: of its steps, the last one that does more than talk to
 * servers or handle files. Empty if there is none.
 */
export function serverCommands(command: string): string[] {
  const steps = stepsOf(command).map((step) => step.filter(isServer));
  return steps.findLast((step) => step.length > 0) ?? [];
}

/** Whether `command` only talks to servers. */
export const isOnlyClient = (command: string): boolean =>
  serverCommands(command).length === 0 && stepsOf(command).flat().some(isClient);
