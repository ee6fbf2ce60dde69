// The numbers of prompts and of shared terminals that users or several files depend on.
import { KIB } from './limits.ts';

/** docs/reference.md "Prompt". */
export const PROMPT = {
  maxBytes: 256 * KIB,
  /** Prompts of one agent that wait for their turn. */
  maxQueued: 100,
  defaultTimeoutMs: 600_000,
  /** A program that prints nothing for so long after a prompt has not taken it. */
  stalledMs: 5_000,
  /** Silence after which a program has taken the text, and the longest time that it may need for that. */
  echoRestMs: 30,
  maxEchoMs: 2_000,
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
