// Conversations of coding agents, which outlive their processes: docs/reference.md "Sessions of agents".
import type { SizeMark } from './terminal.ts';

/**
 * How a type of agent continues a conversation. Texts are of shell command lines; `$SESSION` stands for the
 * id.
 */
export interface SessionFlags {
  /** Follows the command to resume the conversation. */
  readonly resume: string;
  /** Follows the command so that a new conversation has an id of Berth's; null: the program makes its own. */
  readonly begin: string | null;
  /** How to find the id that the program has made; null: only its hooks tell. */
  readonly find: SessionSearch | null;
}

/** How the id of a conversation is found while its process lives. */
export type SessionSearch =
  /**
   * The program has a file of the conversation that Berth has begun once something was said. A glob in the
   * folder that `variable` names, or else in `otherwise` of the home directory; `$BRIEF` stands for the first
   * eight characters of the id.
   */
  | { readonly keptFile: { readonly variable: string; readonly otherwise: string; readonly glob: string } }
  /** In the path of a file that the process holds open: the first group of the expression. */
  | { readonly openFile: string }
  /**
   * In the output of a command that runs in the place of the process: a line for each conversation with its
   * id and its title, a tab between them, the latest first. `$SINCE` stands for the start of the process in
   * epoch milliseconds. The title that the program shows in its window tells them apart.
   */
  | { readonly command: string };

/** In the store while an agent has a conversation. */
export interface StoredSession {
  /** null: its program has told none yet. */
  id: string | null;
  /** Its program has it, so there is something to resume. */
  isBegun?: true;
  /** It was put to sleep, or its machine or its host has gone, and nobody has ended it. */
  asleep?: {
    /** The run that has ended. */
    after: string;
    screen: KeptScreen;
  };
}

/** The screen of an agent without a process. */
export interface KeptScreen {
  cols: number;
  rows: number;
  /** As in the metadata of its run. Absent in those of earlier versions. */
  sizes?: readonly SizeMark[];
  /** The offset in its log up to which it shows the output. */
  end: number;
}

/** The conversation that a run was given. */
export interface RunSession {
  id: string;
  /** The agent was asleep before. */
  woke?: true;
}

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

/** Whether `text` may be the id of a conversation, and stand in a command line. */
export const isSessionId = (text: string): boolean => SESSION_ID.test(text);

/** `cmd` with `flags` for the conversation `id`. */
export const commandWithSession = (cmd: string, flags: string, id: string): string =>
  `${cmd} ${flags.replaceAll('$SESSION', id)}`;
