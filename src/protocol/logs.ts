// Queries over the logs of many services: docs/reference.md "Logs of many services".

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
/** From the least severe to the most. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Whether `text` chooses a run: `last`, a number that counts back from it (1), or an id. */
export const isRunChoice = (text: string): boolean => /^(?:last|[1-9]\d{0,3}|[0-9a-f]{16})$/.test(text);

/** Which lines are wanted; null: all. */
export interface LogFilterSpec {
  /** A text, in any case. */
  q: string | null;
  /** In the syntax of RE2. */
  regex: string | null;
  /** The least severe level. */
  level: LogLevel | null;
  stream: 'stdout' | 'stderr' | null;
  /** Epoch milliseconds. */
  since: number | null;
  until: number | null;
}

/** A search in the logs of `folder`, which has a folder per service. */
export interface LogSearchTask {
  folder: string;
  /** `before`: only entries with a smaller key; null: all. */
  logs: { name: string; before: number | null }[];
  filter: LogFilterSpec;
  /** See `isRunChoice`; null: all. */
  run: string | null;
  /** The most lines, and the most marks. */
  limit: number;
  /** After this time, in milliseconds, what was found is the answer. */
  budgetMs: number;
  /** Texts keep their colours. */
  ansi: boolean;
}

export interface FoundEntry {
  name: string;
  /** Grows along the log of the service. */
  key: number;
  /** Epoch milliseconds. */
  time: number;
  json: string;
  /** A line, and no mark. */
  isLine: boolean;
}

export interface LogSearchAnswer {
  /** The newest first. */
  entries: FoundEntry[];
  /** Of each log: everything from this key on is among the entries, or not wanted. */
  taken: { name: string; key: number }[];
  /** No entry that is left is later, in epoch milliseconds; null: none is left. */
  bound: number | null;
}

/** What is done with the files of logs on other threads than those that ask. */
export interface LogJobs {
  /** Fails invalid_spec, and as a pool of jobs does. */
  search(task: LogSearchTask): Promise<LogSearchAnswer>;
}
