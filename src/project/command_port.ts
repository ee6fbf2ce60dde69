// The port that a command names, for other tools' files, which do not state it.

export interface CommandPort {
  /** `auto`: the port in $PORT. */
  port: number | 'auto';
}

const NUMBER =
  /(?:\bPORT=|--(?:http-)?port[= ]|(?:^|\s)-p[= ]?|(?:--bind|--listen|-b)[= ]\S*:|(?:localhost|127\.0\.0\.1|0\.0\.0\.0):)(\d{2,5})\b/;
const HTTP_SERVER = /\bhttp\.server\s+(\d{2,5})\b/;
/** `$PORT`, `process.env.PORT` and the like, but no assignment. */
const VARIABLE = /\bPORT\b(?!=)/;

/** The port that `command` names; null without one. */
export function portInCommand(command: string): CommandPort | null {
  if (VARIABLE.test(command)) return { port: 'auto' };
  const [, port] = NUMBER.exec(command) ?? HTTP_SERVER.exec(command) ?? [];
  const number = Number(port ?? 0);
  return number > 0 && number <= 65_535 ? { port: number } : null;
}

/** Names that Procfiles give to processes without a port: by Heroku's convention, also as a suffix. */
const WORKER_NAME = /(?:^|[_-])(?:workers?|jobs?|clock|cron|scheduler|queue|consumer)(?:[_-]?\d+)?$/i;
/** Programs that process queues. */
const QUEUE_PROGRAM =
  /(?:^|[\s/])(?:sidekiq|resque|good_job|celery|bin\/jobs|(?:jobs|resque):work|solid_queue:start|(?:queue|schedule):\w+)(?=\s|$)/;
/** Programs that rebuild on changes, and serve nothing. */
const BUILD_WATCH =
  /(?:^|[\s/])(?:tailwindcss:watch(?=\s|$)|(?:tsc|esbuild|sass|tailwindcss|build(?::\w+)?)\s(?!.*--serve)(?:.*\s)?(?:-w|--watch)(?=[\s=]|$))/;

/** Why a process of a Procfile is taken for a worker without a port: its program, or its name. */
export type WorkerSign = 'program' | 'name';

/** Why a process is a worker, from its `type` and its command, which names no port; null: not a worker. */
export const workerSign = (type: string, command: string): WorkerSign | null => {
  if ([QUEUE_PROGRAM, BUILD_WATCH].some((pattern) => pattern.test(command))) return 'program';
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
