// Queries over the logs of many services: docs/reference.md "Logs of many services".

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
/** From the least severe to the most. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Whether `text` selects a run: `last`, a number that counts back from it (1), or an id. */
export const isRunChoice = (text: string): boolean => /^(?:last|[1-9]\d{0,3}|[0-9a-f]{16})$/.test(text);

/** Selects lines; null: all. */
export interface LogFilterSpec {
  /** A substring, ignoring case. */
  q: string | null;
  /** In the syntax of RE2. */
  regex: string | null;
  /** The lowest severity to include. */
  level: LogLevel | null;
  stream: 'stdout' | 'stderr' | null;
  /** Epoch milliseconds. */
  since: number | null;
  until: number | null;
  /** The number of lines before and after each match of q, regex and level to include. */
  context: number;
}

/** A search in the logs of `folder`, which has one folder per service. */
export interface LogSearchTask {
  folder: string;
  /** `before`: only entries with a smaller key; null: all. */
  logs: { name: string; before: number | null }[];
  filter: LogFilterSpec;
  /** See `isRunChoice`; null: all. */
  run: string | null;
  /** The highest number of lines, and of marks. */
  limit: number;
  /** After this time, in milliseconds, the answer is what has been found so far. */
  budgetMs: number;
  /** Whether texts keep their colours. */
  ansi: boolean;
}

export interface FoundEntry {
  name: string;
  /** Increases along the log of the service. */
  key: number;
  /** Epoch milliseconds. */
  time: number;
  json: string;
  /** Whether it is a line rather than a mark. */
  isLine: boolean;
}

export interface LogSearchAnswer {
  /** Newest first. */
  entries: FoundEntry[];
  /** For each log: every wanted entry from this key on is among the entries. */
  taken: { name: string; key: number }[];
  /** No remaining entry is later than this (epoch milliseconds); null: none remain. */
  bound: number | null;
}

/** A position in the log of one service, from which reading continues. */
export interface LogPlace {
  /** The logical offset up to which everything has been read. */
  offset: number;
  /** The number of run marks at the offset that have been read. */
  marks: number;
  /** Where the unfinished last line of stdout and of stderr begins; null: there is none. */
  open: [stdout: number | null, stderr: number | null];
  /**
   * With `context`: the number of lines directly before it that were not shown, at most one more than may be
   * shown; if negative, the number of lines after it that are still to be shown.
   */
  around: number;
}

/** Logs that are followed together, each read up to its position. */
export interface FollowedLogs {
  folder: string;
  logs: {
    name: string;
    place: LogPlace;
    /** Only output of this run; null: of all runs. */
    run: string | null;
    /** Whether it has a process, which may still complete its unfinished line. */
    isRunning: boolean;
  }[];
  filter: LogFilterSpec;
  ansi: boolean;
}

export interface LogReadTask extends FollowedLogs {
  /** The logs that may have grown. */
  grown: string[];
  /** Limits of bytes and of milliseconds after which the answer ends. */
  maxBytes: number;
  budgetMs: number;
}

export interface LogReadAnswer {
  /** The entries in order of time, as frames of an event stream. */
  frames: Uint8Array;
  moved: { name: string; place: LogPlace }[];
  /** The logs that were not read to their end. */
  unfinished: string[];
}

export interface LogStartTask {
  folder: string;
  names: string[];
  filter: LogFilterSpec;
  /** See `isRunChoice`; null: all. */
  run: string | null;
  /** The stream begins with this many last lines of each log; null: with all since `filter.since`. */
  lines: number | null;
}

export interface LogStart {
  name: string;
  place: LogPlace;
  run: string | null;
}

/** Work on log files, done on threads of its own. Each method fails as a pool of jobs does. */
export interface LogJobs {
  /** Fails invalid_spec. */
  search(task: LogSearchTask): Promise<LogSearchAnswer>;
  /** The positions from which logs are read on. Fails invalid_spec. */
  start(task: LogStartTask): Promise<LogStart[]>;
  read(task: LogReadTask): Promise<LogReadAnswer>;
}

export interface LogsQuery {
  lines: number;
  stream: 'stdout' | 'stderr' | null;
  timestamps: boolean;
  /** Whether to return bytes as written, without terminal emulation. */
  raw: boolean;
}

/** A range of the log of a service; offsets are logical. */
export interface LogSlice {
  /** The actual start: rotation may have deleted the requested one. */
  start: number;
  /** The offset to continue from. */
  end: number;
  /** The run that printed it; null: the range has none of the requested output. */
  run: string | null;
  /** The requested output. The gaps between parts belong to the other stream. */
  parts: { offset: number; bytes: Uint8Array }[];
  /** The time (epoch milliseconds) from each offset on, in order; empty unless requested. */
  times: { offset: number; time: number }[];
}
