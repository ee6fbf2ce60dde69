// Calls that have not been answered yet, and ways to answer them before their work is done.
import { fail, MAY_TAKE_EFFECT } from '../../protocol/errors.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';
import type { HttpReply } from './reply.ts';

export interface PendingCall {
  /** Whether it was sent with `auth.token`, or without a token while none is set. */
  readonly isOfToken: boolean;
  /** Called when it is answered before its work is done, so its client no longer waits. */
  onCut: () => void;
}

export class PendingCalls {
  private readonly open = new Map<HttpReply, PendingCall>();
  private idleWaiters: (() => void)[] = [];
  private readonly onDefect: (error: unknown) => void;

  /** `onDefect`: for exceptions of work whose client has already been answered. */
  constructor(onDefect: (error: unknown) => void) {
    this.onDefect = onDefect;
  }

  /** Holds `reply` until `work` is done. `answer` sends its value; its error is sent as it is. */
  track<T>(
    reply: HttpReply,
    call: PendingCall,
    work: Promise<T>,
    answer: (value: T) => void,
    errorHeaders: () => readonly string[] | undefined = () => [],
  ): void {
    this.open.set(reply, call);
    work
      .then((value) => this.open.has(reply) && answer(value))
      .catch((error: unknown) => {
        if (this.open.has(reply)) reply.fail(error, errorHeaders());
        else if (!isFailure(error)) this.onDefect(error);
      })
      .finally(() => {
        this.open.delete(reply);
        if (this.open.size === 0) for (const onIdle of this.idleWaiters.splice(0)) onIdle();
      });
  }

  /** Resolves when no call is pending. */
  idle(): Promise<void> {
    return this.open.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.idleWaiters.push(resolve));
  }

  /** The daemon is ending before they finish. */
  failAll(): void {
    this.cut(() => true, fail('daemon_busy', `the daemon is shutting down; ${MAY_TAKE_EFFECT}`));
  }

  /** `auth.token` has changed: docs/reference.md "Tokens". */
  endToken(): void {
    const failure = fail('unauthorized', `the token has changed; ${MAY_TAKE_EFFECT}`);
    this.cut(({ isOfToken }) => isOfToken, failure);
  }

  private cut(isCut: (call: PendingCall) => boolean, failure: Failure): void {
    for (const [reply, call] of [...this.open]) {
      if (!isCut(call)) continue;
      this.open.delete(reply);
      call.onCut();
      reply.fail(failure);
    }
  }
}
