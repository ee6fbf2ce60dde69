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
  /** Lines before and after each line that q, regex and level find, which come with it. */
  context: number;
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

/** A place in the log of one service, from which it is read on. */
export interface LogPlace {
  /** Logical offset up to which everything was read. */
  offset: number;
  /** Marks of runs at the offset that were read. */
  marks: number;
  /** Where the line begins whose end has not come yet, of stdout and of stderr; null: there is none. */
  open: [stdout: number | null, stderr: number | null];
  /**
   * With `context`: lines directly before it that were not shown, up to one more than may be shown; below 0:
   * lines after it that are owed.
   */
  around: number;
}

/** The logs that are followed together, each read up to its place. */
export interface FollowedLogs {
  folder: string;
  logs: {
    name: string;
    place: LogPlace;
    /** Only output of this run; null: of all. */
    run: string | null;
    /** It has a process, which may end the line that it has begun. */
    isRunning: boolean;
  }[];
  filter: LogFilterSpec;
  ansi: boolean;
}

export interface LogReadTask extends FollowedLogs {
  /** Those that may have grown. */
  grown: string[];
  /** Text, and time in milliseconds, after which the answer ends. */
  maxBytes: number;
  budgetMs: number;
}

export interface LogReadAnswer {
  /** The entries by time, as frames of an event stream. */
  frames: Uint8Array;
  moved: { name: string; place: LogPlace }[];
  /** Those that were not read to their end. */
  unfinished: string[];
}

export interface LogStartTask {
  folder: string;
  names: string[];
  filter: LogFilterSpec;
  /** See `isRunChoice`; null: all. */
  run: string | null;
  /** The last lines of each log that are wanted come first; null: all since `filter.since`. */
  lines: number | null;
}

export interface LogStart {
  name: string;
  place: LogPlace;
  run: string | null;
}

/** What is done with the files of logs on threads of its own. Each fails as a pool of jobs does. */
export interface LogJobs {
  /** Fails invalid_spec. */
  search(task: LogSearchTask): Promise<LogSearchAnswer>;
  /** Where logs are read on from. Fails invalid_spec. */
  start(task: LogStartTask): Promise<LogStart[]>;
  read(task: LogReadTask): Promise<LogReadAnswer>;
}
