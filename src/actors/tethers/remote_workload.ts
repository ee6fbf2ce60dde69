// The workload of a tether, reached through the relay of another Berth.
import type { RelayLink, RelayUser } from '../../adapters/relay/relay_link.ts';
import { openRelayStream } from '../../adapters/relay/relay_stream.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { Trouble, Waiters, WakeTarget } from './pending_connections.ts';
import type { SessionTarget, SessionTargets } from './session_router.ts';

/**
 * Connections wait here for the path to the other Berth, and there for a pod. Owned by the tether's
 * SessionRouter.
 */
export class RemoteWorkload implements SessionTargets, WakeTarget, RelayUser {
  readonly isOpen = false;
  readonly timeoutReason = `the other Berth was not reached within ${TETHER.podWaitTimeoutMs / 1000} s`;
  private readonly link: RelayLink;
  /** The body of a request for a stream. */
  private readonly request: Buffer;
  private readonly leave: () => void;
  private readonly onChange: () => void;
  private waiters: Waiters | null = null;

  /** `onChange`: sessions may go somewhere else now, or the trouble has changed. */
  constructor(link: RelayLink, request: Buffer, onChange: () => void) {
    this.link = link;
    this.request = request;
    this.onChange = onChange;
    this.leave = link.join(this);
  }

  get trouble(): Trouble | null {
    return this.link.trouble;
  }

  get isWaiting(): boolean {
    return this.waiters !== null && !this.waiters.areGone;
  }

  onRelayChange(): void {
    this.onChange();
  }

  choose(): SessionTarget | null {
    const { link, request } = this;
    const mux = link.free;
    if (!mux) return null;
    return {
      sessions: 0,
      isFresh: false,
      isGone: false,
      open: (events) => openRelayStream(mux, request, link.clock, events),
      noteFailure: () => undefined,
    };
  }

  retainUsable(): void {}

  renew(): void {}

  close(): void {
    this.leave();
  }

  async ensureAwake(waiters: Waiters): Promise<undefined> {
    this.waiters = waiters;
    this.link.connect();
  }
}
