// The port that a command names, for other tools' files, which do not state it.
import { isOnlyClient, serverCommands } from './server_command.ts';

export interface CommandPort {
  /** `auto`: the port in $PORT. */
  port: number | 'auto';
}

/** An address to listen on, up to its port. */
const HOST = String.raw`(?:(?:https?|tcp|ssl):\/\/)?[^\s/]*:`;

/** A worker, whose `--address` is that of the server it takes its work from, as Temporal's. */
const WORKER = String.raw`(?:^|[\s/])worker(?:\.\w+)?\s.*`;

/** What is before the port of a server in its command, in order of preference. */
const BEFORE_PORT: readonly string[] = [
  '--(?:http-)?port[= ]',
  // For docker: perhaps an address before it, and the port in the container after it.
  String.raw`-p[= ]?(?:\d+\.\d+\.\d+\.\d+:)?`,
  `--?listen[= ](?:${HOST})?`,
  `(?:--?bind|--?addr|--?http|--address(?<!${WORKER})|--listen-addr(?:ess)?|--web\\.listen-address|-[blS])[= ]${HOST}`,
  `(?:--urls[= ]|ASPNETCORE_URLS=)${HOST}`,
  String.raw`(?:\S*\/)?serve\s(?:.*\s)?-l[= ]?`,
  String.raw`http\.server\s+`,
  `runserver\\s+(?:${HOST})?`,
  'PORT=',
];

/**
 * Words before `port` or `addr` in the name of an option for the server's own port. Other words name other
 * ports: `--redis-port`, `--debug-port`, `-Dmanagement.server.port`, and `--server-port` of a client.
 */
const OWN = String.raw`(?:server\.|(?:api|app|bind|dev|http|listen|micronaut|quarkus|ui|web)[._-])+`;

/** What is before a port that counts only if the command names none in one of the ways above. */
const BEFORE_LIKELY_PORT: readonly string[] = [
  '--?(?:port|PORT)[= ]',
  // For Java and Elasticsearch: `-Dserver.port=`, also in `--args=--server.port=`, and `-E http.port=`.
  String.raw`(?:[^\s=]+=(?:\S*,)?)?-{0,2}[DE]?${OWN}port[= ]`,
  `--?${OWN}addr(?:ess)?[= ]${HOST}`,
  `--serve=(?:${HOST})?`,
  String.raw`serve\s(?:.*\s)?(?:-P[= ]?|-a[= ]${HOST})`,
];

const toPatterns = (befores: readonly string[]): readonly RegExp[] =>
  befores.map((before) => new RegExp(`(?:^|\\s)(?:${before})(\\d{2,5})\\b`));
const NAMES = toPatterns(BEFORE_PORT);
const LIKELY_NAMES = toPatterns(BEFORE_LIKELY_PORT);

/** The port of a debugger, before the command that it runs. */
const DEBUGGER_PORT =
  /(?<=\b(?:debugpy|dlv)\s(?:(?!\s--\s).)*)--listen[= ]\S+|(?<=\brdbg(?:\s-\S+(?:\s[\d.]+)?)*\s)--port[= ]\S+/;

/** The `export PORT=3000` before a server. */
const EXPORTED = /\bexport\s+(?:\w+=\S*\s+)*PORT=["']?(\d{2,5})\b/;

/** `$PORT`, `process.env.PORT` and the like, but no assignment and no option. */
const VARIABLE = /(?<!(?:^|\s)--?)\bPORT\b(?!=)/;

/** The port that `command` listens on, if it names one; null otherwise, as for one that it only talks to. */
export function portInCommand(command: string): CommandPort | null {
  const servers = serverCommands(command).map((server) => server.replace(DEBUGGER_PORT, ''));
  if (servers.length === 0) return null;
  if (VARIABLE.test(command)) return { port: 'auto' };
  const find = (names: readonly RegExp[]) =>
    servers.flatMap((server) => names.map((name) => name.exec(server)));
  const found = [...find(NAMES), EXPORTED.exec(command), ...find(LIKELY_NAMES)];
  const [, port] = found.find((match) => match !== null) ?? [];
  const number = Number(port ?? 0);
  return number > 0 && number <= 65_535 ? { port: number } : null;
}

/** Whether `command` only talks to servers, and not on a port in $PORT. */
export const isPortlessClient = (command: string): boolean =>
  isOnlyClient(command) && !VARIABLE.test(command);

/** Names that Procfiles give to processes without a port: by Heroku's convention, also as a suffix. */
const WORKER_NAME = /(?:^|[_-])(?:workers?|jobs?|clock|cron|scheduler|queue|consumer)(?:[_-]?\d+)?$/i;
/** Programs that process queues. */
const QUEUE_PROGRAM =
  /(?:^|[\s/])(?:sidekiq|resque|good_job|celery|bin\/jobs|(?:jobs|resque):work|solid_queue:start|temporal worker|(?:queue|schedule):\w+)(?=\s|$)/;
/** Programs that rebuild on changes, and serve nothing. */
const BUILD_WATCH =
  /(?:^|[\s/])(?:tailwindcss:watch(?=\s|$)|(?:tsc|esbuild|sass|tailwindcss|build(?::\w+)?)\s(?!.*--serve)(?:.*\s)?(?:-w|--watch)(?=[\s=]|$))/;

/** Why a process of a Procfile is taken for a worker without a port: its program, or its name. */
export type WorkerSign = 'program' | 'name';

/** Why a process is a worker, from its `type` and its command, which names no port; null: not a worker. */
export const workerSign = (type: string, command: string): WorkerSign | null => {
  if ([QUEUE_PROGRAM, BUILD_WATCH].some((pattern) => pattern.test(command)) || isPortlessClient(command))
    return 'program';
  return WORKER_NAME.test(type) ? 'name' : null;
};

/**
 * Web servers that scripts start: those that listen on $PORT by themselves, and those that need an option for
 * it.
 */
const SERVERS: readonly { program: RegExp; options: string }[] = [
  {
    program: /(?:^|[\s/])(?:next dev|next start|nuxt(?:i)? dev|react-scripts start|remix dev)\b/,
    options: '',
  },
  {
    program: /(?:^|[\s/])(?:vite|vite dev|vite serve|astro dev|vitepress dev)(?=\s|$)/,
    options: '--port $PORT --strictPort',
  },
  {
    program: /(?:^|[\s/])(?:webpack serve|webpack-dev-server|ng serve|http-server|parcel)(?=\s|$)/,
    options: '--port $PORT',
  },
];

/** The options that make the server in `script` listen on $PORT; null for an unknown server. */
export const serverOptions = (script: string): string | null =>
  SERVERS.find(({ program }) => program.test(script))?.options ?? null;
