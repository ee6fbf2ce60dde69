// The prompts of this tab that wait until their agents take one: docs/page.md. They wait here rather than in
// requests, because requests that wait would take the six connections that a browser opens to a host.
import { effect, signal } from '@preact/signals';
import { delay } from '../../client/api_call.ts';
import { type Agent, BerthError, isBerthError } from '../../client/browser.ts';
import { agentByName } from './daemon.ts';
import { client } from './session.ts';

/** How long a request may wait for an agent that wakes or has just started. */
const START_MS = 5_000;
/** The pause after a refusal: the list may not show yet that the agent is busy. */
const RETRY_MS = 1_000;
/** Agents in these states take no prompt now. */
const BUSY: ReadonlySet<Agent['state']> = new Set(['starting', 'working']);
/**
 * Refusals of a prompt that was not typed because it was not its turn. wait_timeout has the status 408, for
 * which Chromium itself may send a request once more.
 */
const NOT_YET: ReadonlySet<string> = new Set(['agent_working', 'wait_timeout']);

/** The prompts that wait, by agent. An abort takes the prompt back. */
export const waitingPrompts = signal<ReadonlyMap<string, AbortController>>(new Map());

function note(name: string, back: AbortController | null): void {
  const next = new Map(waitingPrompts.peek());
  if (back) next.set(name, back);
  else next.delete(name);
  waitingPrompts.value = next;
}

/** Resolves when `isOver`, which reads signals, is true, or `end` aborts. */
function until(isOver: () => boolean, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (isOver() || end.aborted) queueMicrotask(finish);
    });
    function finish(): void {
      stop();
      end.removeEventListener('abort', finish);
      resolve();
    }
    end.addEventListener('abort', finish);
  });
}

/**
 * Types a prompt unless it is not its turn; returns whether it was typed. `pid`: the only process that may
 * get it. The daemon knows when that has ended, before the list shows it.
 */
async function tryPrompt(name: string, text: string, pid: number | null): Promise<boolean> {
  try {
    await client.promptAgent(name, { text, timeout: START_MS, ...(pid !== null && { pid }) });
    return true;
  } catch (error) {
    if (isBerthError(error) && NOT_YET.has(error.code)) return false;
    throw error;
  }
}

/**
 * Types a prompt for the agent `name` when it takes one. Returns false when the prompt was taken back. Throws
 * when it is refused, and when the process it was for has ended. The caller sends one at a time for an agent.
 */
export async function promptInTurn(name: string, text: string): Promise<boolean> {
  const back = new AbortController();
  let pid: number | null = null;
  let isEnded = false;
  const isTurn = (): boolean => {
    const agent = agentByName.value.get(name);
    if (agent === undefined) return true;
    // A wake gives a sleeping agent its process.
    pid ??= agent.pid;
    isEnded = agent.pid !== pid;
    return isEnded || !BUSY.has(agent.state);
  };
  try {
    for (;;) {
      note(name, back);
      await until(isTurn, back.signal);
      if (back.signal.aborted) return false;
      if (isEnded) throw new BerthError('not_running', `${name} has ended since, and nothing was typed`);
      note(name, null);
      if (await tryPrompt(name, text, pid)) return true;
      note(name, back);
      await delay(RETRY_MS, back.signal);
    }
  } finally {
    note(name, null);
  }
}
