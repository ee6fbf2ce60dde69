// The messages of prompts: docs/reference.md "Prompt".
import type { AgentStatus } from './agent_state.ts';

export interface PromptMessage {
  /** Chosen by the front, so that the prompt can be cancelled. */
  id: string;
  text: string;
  /** The only process that may get it; null: that of the agent, which is woken. */
  pid: number | null;
  /** Whether it waits until the agent is idle. */
  queue: boolean;
  /** What to wait for after it is submitted; null: nothing. */
  wait: 'idle' | 'change' | null;
  /** For everything together. */
  timeoutMs: number;
}

export interface PromptReply {
  status: AgentStatus;
  /** The lines that have appeared; null: the prompt did not wait. */
  lines: string[] | null;
}

/** Handled by `service:<name>` of an agent. */
export interface PromptProtocol {
  /**
   * Types the prompt and submits it. Fails not_running, no_prompt, agent_blocked, agent_working,
   * agent_stalled, wait_timeout, and invalid_spec for a text that cannot arrive exactly.
   */
  prompt(message: PromptMessage): PromptReply;
  /** The client has disconnected: a prompt still waiting for its turn is not typed. Harmless afterwards. */
  cancelPrompt(message: { id: string }): null;
}
