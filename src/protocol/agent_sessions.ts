// Conversations of coding agents, which outlive their processes: docs/reference.md "Sessions of agents".
import type { SizeMark } from './terminal.ts';

/**
 * How a type of agent continues a conversation. The values are parts of shell command lines; `$SESSION`
 * stands for the conversation's id.
 */
export interface SessionFlags {
  /** Appended to the command to resume the conversation. */
  readonly resume: string;
  /**
   * Appended to the command to begin a conversation with an id chosen by Berth; null: the program chooses its
   * own.
   */
  readonly begin: string | null;
  /** How to find the id that the program chose; null: only its hooks report it. */
  readonly find: SessionSearch | null;
}

/** How to find the id of a conversation while its process is alive. */
export type SessionSearch =
  /**
   * The program writes a file for a conversation that Berth began once something has been said in it. `glob`
   * is looked up in the folder named by the environment variable `variable`, or else in `otherwise` below the
   * home directory; `$BRIEF` stands for the first eight characters of the id.
   */
  | { readonly keptFile: { readonly variable: string; readonly otherwise: string; readonly glob: string } }
  /** The id is in the path of a file that the process holds open: the first group of the expression. */
  | { readonly openFile: string }
  /**
   * The id is in the output of a command run in the process's folder and environment: one line per
   * conversation, its id and title separated by a tab, the latest first. `$SINCE` stands for the start of the
   * process in epoch milliseconds. The window title that the program sets tells the conversations apart.
   */
  | { readonly command: string };

/** Stored while an agent has a conversation. */
export interface StoredSession {
  /** null: the program has not reported one yet. */
  id: string | null;
  /** The program has saved the conversation, so it can be resumed. */
  isBegun?: true;
  /** Set when the agent was put to sleep, or lost its machine or process host, without anyone ending it. */
  asleep?: {
    /** The run that has ended. */
    after: string;
    screen: KeptScreen;
  };
}

/** The last screen of an agent without a process. */
export interface KeptScreen {
  cols: number;
  rows: number;
  /** As in the metadata of its run. Absent in records of earlier versions. */
  sizes?: readonly SizeMark[];
  /** The log offset up to which output is shown. */
  end: number;
}

/** The conversation given to a run. */
export interface RunSession {
  id: string;
  /** The agent was asleep before this run. */
  woke?: true;
}

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

/** Whether `text` is a valid conversation id, safe to put in a command line. */
export const isSessionId = (text: string): boolean => SESSION_ID.test(text);

/** `cmd` with `flags` appended for the conversation `id`. */
export const commandWithSession = (cmd: string, flags: string, id: string): string =>
  `${cmd} ${flags.replaceAll('$SESSION', id)}`;
