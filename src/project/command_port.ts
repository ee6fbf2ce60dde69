// The port that a command names, for files of other tools, which do not say it.

export interface CommandPort {
  /** `auto`: it is that of $PORT. */
  port: number | 'auto';
}

const NUMBER =
  /(?:\bPORT=|--(?:http-)?port[= ]|(?:^|\s)-p[= ]?|(?:--bind|--listen|-b)[= ]\S*:|(?:localhost|127\.0\.0\.1|0\.0\.0\.0):)(\d{2,5})\b/;
const HTTP_SERVER = /\bhttp\.server\s+(\d{2,5})\b/;
/** `$PORT`, `process.env.PORT` and the like, but no assignment. */
const VARIABLE = /\bPORT\b(?!=)/;

/** The port that `command` names; null: none. */
export function portInCommand(command: string): CommandPort | null {
  if (VARIABLE.test(command)) return { port: 'auto' };
  const [, port] = NUMBER.exec(command) ?? HTTP_SERVER.exec(command) ?? [];
  const number = Number(port ?? 0);
  return number > 0 && number <= 65_535 ? { port: number } : null;
}

/** What Procfiles call processes that listen nowhere: by the convention of Heroku, also at the end. */
const WORKER_NAME = /(?:^|[_-])(?:workers?|jobs?|clock|cron|scheduler|queue|consumer)(?:[_-]?\d+)?$/i;
/** Programs that work through queues. */
const QUEUE_PROGRAM =
  /(?:^|[\s/])(?:sidekiq|resque|good_job|celery|bin\/jobs|(?:jobs|resque):work|solid_queue:start|(?:queue|schedule):\w+)(?=\s|$)/;
/** Programs that build again what has changed, and serve nothing. */
const BUILD_WATCH =
  /(?:^|[\s/])(?:tailwindcss:watch(?=\s|$)|(?:tsc|esbuild|sass|tailwindcss|build(?::\w+)?)\s(?!.*--serve)(?:.*\s)?(?:-w|--watch)(?=[\s=]|$))/;

/** By what a process of a Procfile listens nowhere: its program is known to, or its name says so. */
export type WorkerSign = 'program' | 'name';

/** By what a process is a worker, from its `type` and its command, which names no port; null: it is none. */
export const workerSign = (type: string, command: string): WorkerSign | null => {
  if ([QUEUE_PROGRAM, BUILD_WATCH].some((pattern) => pattern.test(command))) return 'program';
  return WORKER_NAME.test(type) ? 'name' : null;
};

/**
 * Servers of web pages that scripts start: those that listen on $PORT by themselves, and those that have to
 * be given it.
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

/** The options with which the server that `script` starts listens on $PORT; null: it is none of the known. */
export const serverOptions = (script: string): string | null =>
  SERVERS.find(({ program }) => program.test(script))?.options ?? null;
