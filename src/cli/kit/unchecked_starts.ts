// Checks whether services without a ready-check stay up for a moment after their start: they count as
// running as soon as they have a process.
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../client/create_client.ts';
import { tookText } from '../../presentation/format.ts';
import { CommandError } from './exit_codes.ts';
import { lastEnd } from './format.ts';
import { whileRegistered } from './removed_meanwhile.ts';

/** Most programs that cannot run end within this time. */
const WATCH_MS = 2_000;
const POLL_MS = 200;

interface UncheckedStart {
  name: string;
  pid: number | null;
  /** performance.now() */
  at: number;
}

export class UncheckedStarts {
  private readonly client: Client;
  private readonly starts: UncheckedStart[] = [];

  constructor(client: Client) {
    this.client = client;
  }

  add(name: string, pid: number | null): void {
    this.starts.push({ name, pid, at: performance.now() });
  }

  /**
   * Resolves when each service has been up for two seconds or has ended. Calls `onFailed` for each one that
   * has ended, was removed or cannot be asked about, and returns the names of those that are up. One that has
   * been put to sleep is neither.
   */
  async settle(onFailed: (name: string, error: unknown) => void): Promise<string[]> {
    const outcomes = await Promise.all(
      this.starts.map(async (start) => {
        try {
          return (await this.staysUp(start)) ? [start.name] : [];
        } catch (error) {
          onFailed(start.name, error);
          return [];
        }
      }),
    );
    return outcomes.flat();
  }

  /** false: it has been put to sleep. Throws a CommandError if the service has ended otherwise. */
  private async staysUp({ name, pid, at }: UncheckedStart): Promise<boolean> {
    let endedMs: number | undefined;
    for (;;) {
      const service = await whileRegistered(name, this.client.service(name));
      const { status } = service;
      if (status === 'sleeping') return false;
      const ms = performance.now() - at;
      const hasEnded = service.pid !== pid && status !== 'stopping';
      if (hasEnded) endedMs ??= ms;
      // One that was stopped may be about to be removed.
      if (hasEnded && (status !== 'stopped' || ms >= WATCH_MS)) {
        const { lastLines, reason } = await whileRegistered(name, this.client.explain(name));
        const after = tookText(endedMs ?? ms);
        const how = service.pid === undefined ? lastEnd(service) || reason : 'and was started again';
        const lines = lastLines.length > 0 ? ['Its last lines:', ...lastLines] : ['Its log is empty.'];
        throw new CommandError(`ended within ${after} of its start (${how})`, lines.join('\n'));
      }
      if (ms >= WATCH_MS) return true;
      await pause(POLL_MS);
    }
  }
}
