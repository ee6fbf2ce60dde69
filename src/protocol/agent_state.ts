// What an agent is doing, who says so, and the messages about it: docs/reference.md "State of an agent".

/** `asleep` has a conversation and no process; `exited` has no process. */
export const AGENT_STATES = ['starting', 'working', 'blocked', 'idle', 'asleep', 'exited'] as const;
export type AgentStateName = (typeof AGENT_STATES)[number];

/** The states that an agent may report of itself. */
export const REPORTED_STATES = ['working', 'blocked', 'idle'] as const;
export type ReportedState = (typeof REPORTED_STATES)[number];

/** Who tells the state, in the order in which they are believed; `process` knows whether there is one. */
export const STATE_AUTHORITIES = ['hook', 'osc', 'screen', 'output', 'process'] as const;
export type StateAuthority = (typeof STATE_AUTHORITIES)[number];

export interface StateReason {
  authority: StateAuthority;
  /** The rule by which it said so. */
  rule: string;
}

/** An agent as the views show it, from its service. */
export interface AgentStatus {
  name: string;
  state: AgentStateName;
  /** Epoch milliseconds. */
  since: number;
  reason: StateReason;
  /** The question's lines while it is `blocked`; else none. */
  question: string[];
  /** What it has set as the title of its window; empty: nothing. */
  title: string;
  /** Epoch milliseconds; null: it has printed nothing. */
  lastOutputAt: number | null;
  /** How many watch its terminal. */
  viewers: number;
  /** The id of its conversation; null: none is known. */
  sessionId: string | null;
}

/** Progress in the window of a program (OSC 9;4): 1 a share, 2 an error, 3 of unknown length, 4 a pause. */
export interface TerminalProgress {
  state: 1 | 2 | 3 | 4;
  percent: number;
}

/** What the output of a terminal has told beside the screen, without control characters and bounded. */
export interface TerminalSignals {
  /** By OSC 0 or 2; empty: nothing. */
  title: string;
  /** By OSC 9;4; null: none. */
  progress: TerminalProgress | null;
  /** The last one by OSC 9, 777 or 99; `at` in epoch milliseconds. null: none. */
  notification: { text: string; at: number } | null;
  /** What it says by OSC 7501 that it is doing; null: nothing. Absent from hosts of earlier versions. */
  status?: { state: ReportedState; at: number } | null;
}

/** The output of the terminal of a run, as the host has seen it pass. */
export interface TerminalReading {
  /** Epoch milliseconds; null: it has printed nothing. */
  lastOutputAt: number | null;
  /** Whether output came a moment ago; a notice follows when it pauses. */
  isMoving: boolean;
  signals: TerminalSignals;
}

/** What an agent's own hook has told last. */
export interface HookWord {
  state: ReportedState;
  /** What it says to a person; null: nothing. */
  message: string | null;
  /** Epoch milliseconds. */
  at: number;
}

/** What each authority has said last, and what it said it by. */
export interface AuthorityView {
  authority: StateAuthority;
  /** null: it says nothing now. */
  state: AgentStateName | null;
  rule: string | null;
  /** Epoch milliseconds; null: it has said nothing. */
  at: number | null;
  /** The file of its rule; null: none. */
  file: string | null;
  /** The lines that made the rule hold, or the message of a hook. */
  lines: string[];
}

export interface StateExplanation {
  status: AgentStatus;
  authorities: AuthorityView[];
  /** Epoch milliseconds at which the screen was drawn last; null: never. */
  drawnAt: number | null;
}

/** The state of an agent as it was told last, which outlives the daemon with the run. */
export interface ToldState {
  state: AgentStateName;
  /** Epoch milliseconds. */
  since: number;
}

/** Handled by `service:<name>` of an agent; any service answers as one that has exited. */
export interface AgentStateProtocol {
  agentStatus(message: Record<string, never>): AgentStatus;
  agentExplanation(message: Record<string, never>): StateExplanation;
  /** The agent's own hook tells its state. Fails not_running without a process. `sessionId` null: none. */
  reportState(message: {
    state: ReportedState;
    message: string | null;
    sessionId: string | null;
  }): AgentStatus;
  /** From the host, while watched: the output of `run` moves, pauses or goes on. */
  terminalMoved(message: { run: string } & TerminalReading): null;
}
