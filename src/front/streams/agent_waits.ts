// Clients waiting for agents to reach a state: docs/reference.md "Waiting for agents". The views know the
// states, so no agent is asked.
import type { AgentStateName } from '../../protocol/agent_state.ts';
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';

/** The state of an agent, as far as waits need it. */
interface Standing {
  name: string;
  state: AgentStateName;
}

export interface AgentWait {
  names: readonly string[];
  for: readonly AgentStateName[];
  /** Whether any agent or all of them must be in one of the states. */
  mode: 'any' | 'all';
  timeoutMs: number;
  /** Registers `listener`, called when the client disconnects. */
  onGone(listener: () => void): void;
}

export class AgentWaits<S extends Standing> {
  private readonly clock: Clock;
  private readonly standingOf: (name: string) => S | null;
  /** Each call rechecks one wait, or ends it with an error. */
  private readonly open = new Set<(error?: unknown) => void>();

  /** `standingOf`: an agent's state; null: there is none with that name. */
  constructor(clock: Clock, standingOf: (name: string) => S | null) {
    this.clock = clock;
    this.standingOf = standingOf;
  }

  /** The number of waiting clients. */
  get count(): number {
    return this.open.size;
  }

  /**
   * Resolves with the agents' states once they are as asked. Rejects with wait_timeout, unknown_agent, and
   * daemon_busy when the daemon shuts down.
   */
  wait(wait: AgentWait): Promise<S[]> {
    return new Promise((resolve, reject) => {
      let cancel = (): void => {};
      const done = (settle: () => void): void => {
        this.open.delete(look);
        cancel();
        settle();
      };
      const look = (error?: unknown): void => {
        try {
          if (error !== undefined) throw error;
          const rows = this.rowsOf(wait.names);
          if (isOver(rows, wait)) done(() => resolve(rows));
        } catch (reason) {
          done(() => reject(reason));
        }
      };
      this.open.add(look);
      look();
      if (!this.open.has(look)) return;
      cancel = this.clock.after(wait.timeoutMs, () => look(this.timeoutOf(wait)));
      wait.onGone(() => look(fail('daemon_busy', 'its client has disconnected')));
    });
  }

  /** Settles as `work` does, or with daemon_busy if the daemon shuts down first. */
  whileServing<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (error?: unknown): void => {
        if (error !== undefined) reject(error);
      };
      this.open.add(end);
      work.then(resolve, reject).finally(() => this.open.delete(end));
    });
  }

  /** The states of agents, or the set of agents, have changed. */
  look(): void {
    for (const look of [...this.open]) look();
  }

  /** The daemon is shutting down. */
  end(): void {
    for (const look of [...this.open]) look(fail('daemon_busy', 'the daemon is shutting down'));
  }

  private rowsOf(names: readonly string[]): S[] {
    return names.map((name) => {
      const row = this.standingOf(name);
      if (!row) throw fail('unknown_agent', `there is no agent ${name}`);
      return row;
    });
  }

  private timeoutOf({ names, timeoutMs }: AgentWait): Error {
    const doing = this.rowsOf(names).map(({ name, state }) => `${name} is ${state}`);
    return fail('wait_timeout', `after ${timeoutMs} ms ${doing.slice(0, 20).join(', ')}`);
  }
}

function isOver(rows: readonly Standing[], { for: states, mode }: AgentWait): boolean {
  const isThere = ({ state }: Standing): boolean => states.includes(state);
  return mode === 'any' ? rows.some(isThere) : rows.every(isThere);
}
