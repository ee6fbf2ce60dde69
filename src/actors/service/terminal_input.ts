// The input of one terminal's viewers, on its way to the process host: docs/reference.md "Attach". One
// message is under way at a time, and the host answers when the program has room. So a program that does not
// read delays only its own input.
import { fail } from '../../protocol/errors.ts';
import { AGENT } from '../../settings/agent_limits.ts';

export interface TerminalInputOptions {
  /** Resolves with true when the terminal has taken the input, with false when it is gone. */
  write(data: Uint8Array): Promise<boolean>;
  onTaken(viewer: string): void;
}

interface Typed {
  /** null: a client that is not attached. */
  viewer: string | null;
  data: Uint8Array;
  settle: (isTaken: boolean) => void;
}

export class TerminalInput {
  private readonly options: TerminalInputOptions;
  private waiting: Typed[] = [];
  private isWriting = false;

  constructor(options: TerminalInputOptions) {
    this.options = options;
  }

  add(viewer: string, data: Uint8Array): void {
    // Its viewers are told of the end of a terminal that is gone.
    const settle = (isTaken: boolean): void => (isTaken ? this.options.onTaken(viewer) : undefined);
    this.push({ viewer, data, settle });
  }

  /**
   * Types for a client that is not attached. Resolves when the terminal has taken the input, or is gone.
   * Fails daemon_busy when too much is already waiting.
   */
  type(data: Uint8Array): Promise<void> {
    if (this.waitingBytes() + data.length > AGENT.maxUnacknowledgedBytes)
      throw fail('daemon_busy', 'the program does not read what was typed before');
    return new Promise((resolve) => this.push({ viewer: null, data, settle: () => resolve() }));
  }

  /** A viewer's last input still arrives after it has left, unless the program does not read at all. */
  leave(viewer: string): void {
    if (this.waitingBytes() > AGENT.maxUnacknowledgedBytes)
      this.waiting = this.waiting.filter((typed) => typed.viewer !== viewer);
  }

  private push(typed: Typed): void {
    this.waiting.push(typed);
    if (!this.isWriting) void this.writeAll();
  }

  private waitingBytes(): number {
    return this.waiting.reduce((sum, { data }) => sum + data.length, 0);
  }

  private async writeAll(): Promise<void> {
    this.isWriting = true;
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      next.settle(await this.options.write(next.data));
    }
    this.isWriting = false;
  }
}
