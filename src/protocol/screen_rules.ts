// The rules for reading an agent's state from its screen: docs/reference.md "Screen rules".
import type { ReportedState } from './agent_state.ts';
import type { ScreenTask } from './terminal.ts';

/** What a rule examines: the lines of the screen, the window title, or the last notification. */
export const RULE_REGIONS = ['screen', 'title', 'notification'] as const;
export type RuleRegion = (typeof RULE_REGIONS)[number];

/** A rule matches if all its conditions hold. */
export interface ScreenRule {
  name: string;
  state: ReportedState;
  within: RuleRegion;
  /** For the screen: only its last lines, not counting blank ones; null: all. */
  last: number | null;
  /** Each must occur in some line. */
  contains: string[];
  /** One must occur in some line; empty: no condition. */
  any: string[];
  /** None may occur in any line. */
  absent: string[];
  /** Each must match some line: RE2 expressions. */
  matches: string[];
  /** The file that it comes from. */
  file: string;
}

/** The rules of one agent type, in the order they are tried. The first match gives the state. */
export interface RuleSet {
  /** Changes whenever the rules do. */
  id: string;
  rules: ScreenRule[];
}

/** The name of the rules for every agent, tried after those of its type. */
export const ANY_TYPE = 'any';

/** A rule that was left out because of an error. */
export interface RuleFault {
  file: string;
  /** Counted from 1. */
  line: number;
  message: string;
}

/** All rules. */
export interface LoadedRules {
  sets: [type: string, set: RuleSet][];
  faults: RuleFault[];
}

/** The job that draws a screen and tries rules on it. */
export interface ReadStateTask extends ScreenTask {
  rules: RuleSet;
  /** Empty: as set by the output. */
  title: string;
  notification: string;
}

/** A rule that matched. */
export interface RuleMatch {
  name: string;
  state: ReportedState;
  file: string;
  /** The lines that made it match. */
  lines: string[];
}

/** What a screen says. */
export interface StateReading {
  /** The match on the screen, and the one on title or notification; null: none. */
  screen: RuleMatch | null;
  beside: (RuleMatch & { within: 'title' | 'notification' }) | null;
  /** The lines of the question, if the matching rule says there is one. */
  question: string[];
  /** The screen is empty. */
  isBlank: boolean;
  /** Its size. */
  cols: number;
  rows: number;
  /** Restores a terminal of that size to this screen, so that the next drawing can start there. */
  snapshot: Uint8Array | null;
  /** The bytes at the end of the output that the snapshot lacks, and whether that is because time was up. */
  undrawnBytes: number;
  isCut: boolean;
  /** The window title that the program has set. */
  title: string;
  /** How long it took, in milliseconds. */
  ms: number;
}
