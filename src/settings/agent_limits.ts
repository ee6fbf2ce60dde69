// The numbers of states, prompts and shared terminals that users or several files depend on.
import { KIB } from './limits.ts';

/** What agents are doing: docs/reference.md "State of an agent". */
export const AGENT_STATE = {
  /** Output that came within this time counts as work, where nothing else tells. */
  outputMs: 3_000,
  /** A process that has printed nothing is `starting` for this long. */
  startingMs: 3_000,
  /** Silence after which the output of a terminal has paused. */
  pauseMs: 100,
  /** Shortest interval between two notices about a terminal that moves now and then. */
  noticeIntervalMs: 150,
  /** Interval between notices about a terminal that moves all the time. */
  movingNoticeMs: 1_000,
  /** Interval at which the host looks at the terminals that move, while there are any. */
  lookIntervalMs: 30,
  /** Shortest interval between two events about one agent. */
  eventIntervalMs: 250,
  /** Rules of a file, and the length of a text in one. */
  maxRules: 200,
  maxRuleText: 500,
  /** Lines of a question that are told. */
  maxQuestionLines: 24,
  /** The end of the output since the last drawing that is drawn; what is before it is left out. */
  maxDrawnBytes: 128 * KIB,
  /** The part of a processor that drawing for states may take, and how far it may run ahead. */
  drawShare: 0.06,
  drawAheadMs: 400,
  /** Time for one drawing; the rest of the output is left out. */
  drawBudgetMs: 250,
  /** Progress that a program shows counts for this long after its last output. */
  progressMs: 10_000,
  /** Length of what a hook may say, and of the id of a conversation. */
  maxHookMessage: 500,
  maxSessionId: 200,
} as const;

/** docs/reference.md "Prompt". */
export const PROMPT = {
  maxBytes: 256 * KIB,
  /** Prompts of one agent that wait for their turn. */
  maxQueued: 100,
  defaultTimeoutMs: 600_000,
  /** A program that prints nothing for so long after a prompt has not taken it. */
  stalledMs: 5_000,
  /** Silence after which what a program prints has come to a rest. */
  echoRestMs: 30,
  /** Longest time for that rest, or for something new. */
  quietMs: 2_000,
  /** Time for a program that prints nothing to show the text, and for one that prints something else. */
  maxDeafMs: 4_000,
  maxEchoMs: 10_000,
  /** Silence after which a prompt counts as over although the screen shows nothing of it. */
  untakenMs: 30_000,
  /** For so long a quiet, unknown screen is taken for a pause of the program rather than for a question. */
  guessMs: 10_000,
  /** How often a program is given the submitting key that it may take for a newline. */
  maxSubmits: 4,
  /** A program is new for so long, and takes its first prompt when nothing has moved for a while. */
  newMs: 30_000,
  settleMs: 1_000,
  /** Last lines of the screen, where nothing tells the lines of the question. */
  questionLines: 12,
} as const;

/** docs/reference.md "Shared terminals". */
export const SHARE = {
  maxMinutes: 10_080,
  /** Shares of all agents that are open at once, and viewers of one share. */
  maxOpen: 256,
  maxViewers: 16,
  /** Longest time between two looks at the clock, while there is a share. */
  lookMs: 30_000,
} as const;

/** Conversations of agents: docs/reference.md "Sessions of agents". */
export const SESSION = {
  /** Shortest time of `sleep`. */
  minIdleMs: 1_000,
  /** The longest that a command may take which lists conversations. */
  searchMs: 30_000,
  /** The beginning of a title that programs show whole in the title of their window. */
  titleChars: 24,
  /** The longest that the request which wakes an agent waits for its server to listen. */
  listenMs: 10_000,
} as const;
