// What an agent is doing, which source says so, and the messages about it:
// docs/reference.md "State of an agent".

/** `asleep`: a conversation but no process. `exited`: no process. */
export const AGENT_STATES = ['starting', 'working', 'blocked', 'idle', 'asleep', 'exited'] as const;
export type AgentStateName = (typeof AGENT_STATES)[number];

/** The states an agent may report about itself. */
export const REPORTED_STATES = ['working', 'blocked', 'idle'] as const;
export type ReportedState = (typeof REPORTED_STATES)[number];

/** The sources of a state, the most trusted first. `process` knows whether there is one. */
export const STATE_AUTHORITIES = ['hook', 'osc', 'screen', 'output', 'process'] as const;
export type StateAuthority = (typeof STATE_AUTHORITIES)[number];

export interface StateReason {
  authority: StateAuthority;
  /** The rule by which the source decided. */
  rule: string;
}

/** An agent as the views show it, from its service. */
export interface AgentStatus {
  name: string;
  state: AgentStateName;
  /** Epoch milliseconds. */
  since: number;
  reason: StateReason;
  /** The lines of the question while `blocked`; otherwise empty. */
  question: string[];
  /** The window title it has set; empty if none. */
  title: string;
  /** Epoch milliseconds; null: it has printed nothing yet. */
  lastOutputAt: number | null;
  /** The number of clients watching its terminal. */
  viewers: number;
  /** The id of its conversation; null if unknown. */
  sessionId: string | null;
  /** An earlier daemon published `state`, and it has not been determined again yet. */
  isKept?: true;
}

/**
 * Progress that a program reports (OSC 9;4). State 1: a percentage, 2: an error, 3: indeterminate, 4: paused.
 */
export interface TerminalProgress {
  state: 1 | 2 | 3 | 4;
  percent: number;
}

/** What a terminal's output has said besides the screen: bounded, and without control characters. */
export interface TerminalSignals {
  /** From OSC 0 or 2; empty if none. */
  title: string;
  /**
   * When the title last changed soon after another change, as by a spinner, in epoch milliseconds; null:
   * never. Absent from hosts of earlier versions.
   */
  titleMovedAt?: number | null;
  /** From OSC 9;4; null if none. */
  progress: TerminalProgress | null;
  /** The last one from OSC 9, 777 or 99; `at` in epoch milliseconds. null if none. */
  notification: { text: string; at: number } | null;
  /**
   * The program's own report of its state by OSC 7501; null if none. Absent from hosts of earlier versions.
   */
  status?: { state: ReportedState; at: number } | null;
}

/** A run's terminal output, as the host saw it. */
export interface TerminalReading {
  /** Epoch milliseconds; null: it has printed nothing yet. */
  lastOutputAt: number | null;
  /** Whether there was output just now. A notice follows when it pauses. */
  isMoving: boolean;
  signals: TerminalSignals;
}

/** The last report of an agent's own hook. */
export interface HookWord {
  state: ReportedState;
  /** What it says to a person; null if nothing. */
  message: string | null;
  /** Epoch milliseconds. */
  at: number;
}

/** The latest word of each source, and what it is based on. */
export interface AuthorityView {
  authority: StateAuthority;
  /** null: it says nothing at present. */
  state: AgentStateName | null;
  rule: string | null;
  /** Epoch milliseconds; null: it has never said anything. */
  at: number | null;
  /** The file that contains its rule; null if none. */
  file: string | null;
  /** The lines that matched the rule, or the hook's message. */
  lines: string[];
}

export interface StateExplanation {
  status: AgentStatus;
  authorities: AuthorityView[];
  /** When the screen was last drawn, in epoch milliseconds; null: never. */
  drawnAt: number | null;
}

/** The last published state of an agent. It is stored with the run and outlives the daemon. */
export interface ToldState {
  state: AgentStateName;
  /** Epoch milliseconds. */
  since: number;
  /** Absent if an earlier version published it, as is `question`. */
  reason?: StateReason;
  question?: string[];
}

/** Handled by `service:<name>` of an agent. Any other service answers like an agent that has exited. */
export interface AgentStateProtocol {
  agentStatus(message: Record<string, never>): AgentStatus;
  agentExplanation(message: Record<string, never>): StateExplanation;
  /**
   * Reported by a hook: the agent's own, or that of a program that it runs, which is ignored. Fails
   * not_running without a process.
   */
  reportState(message: {
    state: ReportedState;
    message: string | null;
    /** null: none given. */
    sessionId: string | null;
    /** The agent type of the hook's program; null: none given, as by hooks of earlier versions. */
    reporter: string | null;
  }): AgentStatus;
  /** From the host, while watched: output of `run` has started, paused or resumed. */
  terminalMoved(message: { run: string } & TerminalReading): null;
}
