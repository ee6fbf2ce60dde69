// Prompts that wait for a condition. Each is rechecked whenever the output, the agent's state or the time may
// have changed the outcome.
import { fail } from '../../protocol/errors.ts';
import type { PromptMessage } from '../../protocol/prompts.ts';
import type { Clock, Failure } from '../../runtime/actor.ts';
import type { ServiceLog } from './service_log.ts';

export interface PromptLooksOptions {
  clock: Clock;
  log: Pick<ServiceLog, 'watch'>;
  /** Calls `onChange` after every change of the agent's state. Returns a function that unsubscribes. */
  watchState(onChange: () => void): () => void;
}

/** A prompt that has not been answered yet. */
export interface OpenPrompt extends PromptMessage {
  /** The run that it is for: that of the agent when it came. */
  run: string;
  /** Monotonic time at which its client stops waiting. */
  until: number;
  isCancelled: boolean;
  /** Rechecks its condition. */
  onChange: () => void;
}

/** The result of a check; or that there is none yet, and the ms after which to check again. */
export type PromptLook<T> = { found: T } | { againMs: number | null };
export const NOT_YET = { againMs: null } as const;

export class PromptLooks {
  private readonly options: PromptLooksOptions;

  constructor(options: PromptLooksOptions) {
    this.options = options;
  }

  /**
   * Checks until there is a result; null at the monotonic time `latest`. Fails when the client has
   * disconnected.
   */
  until<T>(prompt: OpenPrompt, latest: number, look: () => PromptLook<T>): Promise<T | null> {
    const { clock, log, watchState } = this.options;
    let again = (): void => {};
    const ends = [watchState(() => again()), log.watch(() => again())];
    prompt.onChange = () => again();
    const found = new Promise<T | null>((resolve, reject) => {
      let cancel = (): void => {};
      let isOver = false;
      const done = (settle: () => void): void => {
        isOver = true;
        cancel();
        settle();
      };
      again = () => {
        if (isOver) return;
        cancel();
        try {
          if (prompt.isCancelled) throw cancelled();
          const seen = look();
          const left = latest - clock.monotonic();
          if ('found' in seen) done(() => resolve(seen.found));
          else if (left <= 0) done(() => resolve(null));
          else cancel = clock.after(Math.min(left, seen.againMs ?? left), again);
        } catch (error) {
          done(() => reject(error));
        }
      };
      again();
    });
    return found.finally(() => {
      for (const end of ends) end();
    });
  }
}

/** The failure of a prompt whose client has disconnected. */
export const cancelled = (): Failure => fail('daemon_busy', 'its client has disconnected');
