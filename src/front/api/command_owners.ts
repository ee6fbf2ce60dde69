// Which agent prepared a command: only that agent may run it. docs/reference.md "Agent tokens".
import type { Clock } from '../../runtime/actor.ts';
import { COMMAND } from '../../settings/limits.ts';
import type { Reach } from './reach.ts';

/** Commands prepared by agents and not attached yet, by id. */
export class CommandOwners {
  private readonly clock: Clock;
  private readonly agents = new Map<string, string>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Remembers the owner as long as the command may be attached. */
  add(id: string, { agent }: Reach): void {
    this.agents.set(id, agent);
    this.clock.after(COMMAND.attachTimeoutMs, () => this.agents.delete(id));
  }

  has(id: string, { agent }: Reach): boolean {
    return this.agents.get(id) === agent;
  }
}
