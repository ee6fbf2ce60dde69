// The rules by which a screen tells what an agent is doing: docs/reference.md "Screen rules".
import type { ReportedState } from './agent_state.ts';
import type { ScreenTask } from './terminal.ts';

/** What a rule looks at: the lines of the screen, the title of the window, or the last notification. */
export const RULE_REGIONS = ['screen', 'title', 'notification'] as const;
export type RuleRegion = (typeof RULE_REGIONS)[number];

/** A rule holds where all that it names is so. */
export interface ScreenRule {
  name: string;
  state: ReportedState;
  within: RuleRegion;
  /** Of the screen: only its last lines, blank ones not counted; null: all. */
  last: number | null;
  /** Each is in a line. */
  contains: string[];
  /** One of them is in a line; empty: no matter. */
  any: string[];
  /** None is in a line. */
  absent: string[];
  /** Each matches a line: expressions of RE2. */
  matches: string[];
  /** The file that it is from. */
  file: string;
}

/** The rules of one type, in the order in which they are tried: the first that holds tells the state. */
export interface RuleSet {
  /** Changes with the rules. */
  id: string;
  rules: ScreenRule[];
}

/** The name of the rules that hold for every agent, after those of its type. */
export const ANY_TYPE = 'any';

/** A rule that is left out. */
export interface RuleFault {
  file: string;
  /** From 1. */
  line: number;
  message: string;
}

/** All rules there are. */
export interface LoadedRules {
  sets: [type: string, set: RuleSet][];
  faults: RuleFault[];
}

/** The job that draws a screen and tries rules on it. */
export interface ReadStateTask extends ScreenTask {
  rules: RuleSet;
  /** Empty: as the output has set it. */
  title: string;
  notification: string;
}

/** A rule that holds. */
export interface RuleMatch {
  name: string;
  state: ReportedState;
  file: string;
  /** The lines that made it hold. */
  lines: string[];
}

/** What a screen tells. */
export interface StateReading {
  /** By the screen, and by title or notification; null: no rule holds. */
  screen: RuleMatch | null;
  beside: (RuleMatch & { within: 'title' | 'notification' }) | null;
  /** The lines of the question, if a rule says that there is one. */
  question: string[];
  /** The screen shows nothing. */
  isBlank: boolean;
  /** Makes a terminal of that size show the same, so that the next drawing begins there. */
  snapshot: Uint8Array | null;
  /** What the program has set as the title of its window. */
  title: string;
  /** How long it took, in milliseconds. */
  ms: number;
}
