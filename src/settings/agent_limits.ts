// The numbers of states, prompts and shared terminals that users or several files depend on.
import { KIB, MIB } from './limits.ts';

/** What agents are doing: docs/reference.md "State of an agent". */
export const AGENT_STATE = {
  /** Without better evidence, output within this time counts as work. */
  outputMs: 3_000,
  /** A process that has printed nothing is `starting` for this long. */
  startingMs: 3_000,
  /**
   * Silence after which the output of a terminal has paused, and the same for a terminal that draws frames at
   * such intervals.
   */
  pauseMs: 100,
  maxPauseMs: 180,
  /** The shortest interval between notifications about a terminal with occasional output. */
  noticeIntervalMs: 150,
  /** The interval between notifications about a terminal with constant output. */
  movingNoticeMs: 1_000,
  /** The same once its output has not paused for `steadyAfterMs`. */
  steadyNoticeMs: 2_000,
  steadyAfterMs: 10_000,
  /** How often the host checks terminals with output, while there are any. */
  lookIntervalMs: 30,
  /** Shortest interval between two events about one agent. */
  eventIntervalMs: 250,
  /** Rules of a file, and the length of a text in one. */
  maxRules: 200,
  maxRuleText: 500,
  /** The most lines of a question to report. */
  maxQuestionLines: 24,
  /** Only this much of the latest output since the last drawing is drawn. */
  maxDrawnBytes: 128 * KIB,
  /**
   * The share of a processor for drawings that determine states, and how far it may be exceeded for a while.
   */
  drawShare: 0.06,
  drawAheadMs: 400,
  /** The time limit of a drawing. Output that is left over is drawn next. */
  drawBudgetMs: 250,
  /** Reported progress is valid for this long after the program's last output. */
  progressMs: 10_000,
  /** The longest message of a hook, and the longest id of a conversation. */
  maxHookMessage: 500,
  maxSessionId: 200,
} as const;

/** docs/reference.md "Prompt". */
export const PROMPT = {
  maxBytes: 256 * KIB,
  /** The most prompts of one agent that may wait. */
  maxQueued: 100,
  defaultTimeoutMs: 600_000,
  /** A program that prints nothing for this long after a prompt has not taken it. */
  stalledMs: 5_000,
  /** After this long without output, what a program prints counts as complete. */
  echoRestMs: 30,
  /** The longest wait for that, or for new output. */
  quietMs: 2_000,
  /**
   * How long to wait for the text to appear: from a program that prints nothing, and from one that prints
   * something else.
   */
  maxDeafMs: 4_000,
  maxEchoMs: 10_000,
  /** After this long without output, a prompt counts as done although the screen never showed it. */
  untakenMs: 30_000,
  /** For this long, a quiet unknown screen is taken for a pause rather than a question. */
  guessMs: 10_000,
  /** For this long, the screen is expected to show a question that a hook or the title reports. */
  unseenMs: 3_000,
  /** How often to press the submitting key for a program that may take it for a newline. */
  maxSubmits: 4,
  /**
   * How long a program counts as new, and how long a new one must be quiet before it gets its first prompt.
   */
  newMs: 30_000,
  settleMs: 1_000,
  /** How many of the last lines of the screen to show when the question's lines are unknown. */
  questionLines: 12,
  /** The largest id of a process on Linux. */
  maxPid: 4_194_304,
} as const;

/** docs/reference.md "Shared terminals". */
export const SHARE = {
  maxMinutes: 10_080,
  /** The most open shares of all agents together, and viewers of one share. */
  maxOpen: 256,
  maxViewers: 16,
  /** The longest time between two checks of the clock while there is a share. */
  lookMs: 30_000,
} as const;

/** Conversations of agents: docs/reference.md "Sessions of agents". */
export const SESSION = {
  /** The shortest time for `sleep`. */
  minIdleMs: 1_000,
  /** The time limit of a command that lists conversations. */
  searchMs: 30_000,
  /** How much of a conversation's title programs show unabridged in their window title. */
  titleChars: 24,
  /** How long a request that wakes an agent waits for its server to listen. */
  listenMs: 10_000,
} as const;

/** Agents: docs/reference.md "Terminals", "Attach". */
export const AGENT = {
  defaultCols: 120,
  defaultRows: 32,
  /** Most columns, and most rows, of a terminal. */
  maxColsOrRows: 1_000,
  /** Shortest interval between two changes of a terminal's size. */
  resizeIntervalMs: 20,
  /** How much output a viewer may leave unacknowledged, and how much input its program may leave unread. */
  maxUnacknowledgedBytes: MIB,
  /** The same for all viewers together: if there are more than 64, they share it. */
  maxViewerBytes: 64 * MIB,
  /** How much of the latest output a screen is drawn from. A viewer that is further behind gets a screen. */
  replayBytes: MIB,
  /** The number of past sizes to keep for a terminal; earlier output is drawn at the oldest of them. */
  maxSizeMarks: 32,
  /** The time limit of a drawing; the rest of the output is sent unchanged. */
  drawBudgetMs: 500,
  /**
   * The time limit of a drawing that needs all of the output, because the screen is read as text, or of all
   * before a change of size.
   */
  readBudgetMs: 2_000,
  /** How long a drawing may take before its thread is ended, and the pause of that terminal afterwards. */
  drawTimeoutMs: 10_000,
  overrunPauseMs: 10_000,
  /** The most keys in one request. */
  maxKeys: 1_000,
} as const;
