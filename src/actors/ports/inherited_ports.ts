// The ports that processes of an earlier daemon have behind doors: docs/reference.md "Sleep of services".
import type { HostProtocol } from '../../protocol/host.ts';
import { innerOwner } from '../../protocol/ports.ts';
import { type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { PortClaims } from './port_claims.ts';

/** Claims them from the host's ledger, because a process that is still starting does not listen yet. */
export class InheritedPorts {
  private readonly host: Ref<HostProtocol>;
  private readonly claims: PortClaims;
  private known: Promise<void> | null = null;

  constructor(host: Ref<HostProtocol>, claims: PortClaims) {
    this.host = host;
    this.claims = claims;
  }

  /** Resolves once they are claimed, or if the host does not answer; the next call then asks it again. */
  claimed(): Promise<void> {
    this.known ??= this.claim();
    return this.known;
  }

  private async claim(): Promise<void> {
    const asked = this.host.ask('runs', {}, { deadlineMs: SERVICE.hostAskTimeoutMs });
    const { runs } = await tolerateFailure(asked, () => {
      this.known = null;
      return { runs: [] };
    });
    for (const { service, memo, end } of runs) {
      const owner = innerOwner(service);
      const isBehindDoor = end === null && memo.doorPort !== undefined;
      if (isBehindDoor && !this.claims.has(owner)) this.claims.claim(owner, memo.port);
    }
  }
}
