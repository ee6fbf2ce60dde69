// What the watcher is asked about the files of one service, and what it says: docs/reference.md "Watch".
import type { ServiceSpec } from '../../protocol/service.ts';
import { isSameRequest, type WatchRequest, type WatchState } from '../../protocol/watcher.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import { liveRun } from './state.ts';

export interface WatcherRequestOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  life: ServiceLifecycle;
}

export class WatcherRequest {
  private readonly options: WatcherRequestOptions;
  /** The current one; null if none. */
  private request: WatchRequest | null = null;
  private latest: WatchState | null = null;

  constructor(options: WatcherRequestOptions) {
    this.options = options;
  }

  /** Whether the watcher is asked to watch. */
  get isMade(): boolean {
    return this.request !== null;
  }

  /** What is watched; null if nothing. */
  get state(): WatchState | null {
    return this.request && this.latest;
  }

  /** Sends the watcher the current request, or withdraws it unless the files are wanted. */
  async send(isWanted: boolean): Promise<void> {
    const { context, life, name } = this.options;
    const { end, state, stored } = life.snapshot();
    if (!isWanted || !stored?.spec.watch) {
      if (this.request) this.withdraw();
      this.request = this.latest = null;
      return;
    }
    const { spec } = stored;
    const { paths, ignore, debounceMs } = stored.spec.watch;
    const run = liveRun(state);
    const before = run ? (run.metadata.changedAt ?? run.startedAt) : end?.at;
    const since = (this.request ? null : before) ?? context.clock.now();
    const request = { service: name, cwd: spec.cwd, paths, ignore, debounceMs, since };
    if (this.request && isSameRequest(this.request, request)) return;
    this.request = request;
    await this.sendFilled(request, spec);
  }

  /** As `send`, to a watcher that has restarted or has never been asked. */
  async sendAgain(isWanted: boolean): Promise<void> {
    this.request = null;
    await this.send(isWanted);
  }

  /** The watcher need not watch any more. */
  withdraw(): void {
    this.options.context.ref('watcher').tell('unwatch', { service: this.options.name });
  }

  onState(state: WatchState): null {
    this.latest = state;
    return null;
  }

  /** Sends `request`, unless there is another by then. */
  private async sendFilled(request: WatchRequest, spec: ServiceSpec): Promise<void> {
    const { context, effects } = this.options;
    const unwatched = (trouble: string): null => this.onState({ folders: 0, trouble });
    const threadTrouble = 'the thread that watches files does not run; the log of the daemon says why';
    const ready = context.ref('threads').ask('ensure', { address: 'watcher' });
    if (
      !(await tolerateFailure(
        ready.then(() => true),
        () => unwatched(threadTrouble),
      ))
    )
      return;
    const filled = await tolerateFailure(effects.filled(spec), ({ message }) => unwatched(message));
    if (filled && this.request === request)
      context.ref('watcher').tell('watch', { ...request, cwd: filled.spec.cwd });
  }
}
