// What the viewers of one terminal type, on its way to the process host: docs/reference.md "Attach". One
// message is under way at a time, and the host answers when the program has room, so that a program that does
// not read holds up nothing but its own input.
import { AGENT } from '../../settings/limits.ts';

export interface TerminalInputOptions {
  /** Resolves when the terminal has taken the input, or is gone. */
  write(data: Uint8Array): Promise<void>;
  onTaken(viewer: string): void;
}

interface Typed {
  viewer: string;
  data: Uint8Array;
}

export class TerminalInput {
  private readonly options: TerminalInputOptions;
  private waiting: Typed[] = [];
  private isWriting = false;

  constructor(options: TerminalInputOptions) {
    this.options = options;
  }

  add(viewer: string, data: Uint8Array): void {
    // A copy, because the frame does not belong to us.
    this.waiting.push({ viewer, data: Uint8Array.from(data) });
    if (!this.isWriting) void this.writeAll();
  }

  /** What a viewer typed last arrives after it has left, unless the program does not read at all. */
  leave(viewer: string): void {
    const bytes = this.waiting.reduce((sum, { data }) => sum + data.length, 0);
    if (bytes > AGENT.maxUnacknowledgedBytes)
      this.waiting = this.waiting.filter((typed) => typed.viewer !== viewer);
  }

  private async writeAll(): Promise<void> {
    this.isWriting = true;
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      await this.options.write(next.data);
      this.options.onTaken(next.viewer);
    }
    this.isWriting = false;
  }
}
