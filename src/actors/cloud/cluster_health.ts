// What calls have shown about each cluster since the start, and the events that clients should learn without
// asking; docs/reference.md "Event types".

import type { CloudEventsProtocol, NewCloudEvent } from '../../protocol/cloud_events.ts';
import { expiryWarningTime } from '../../protocol/cluster_account.ts';
import type { ClusterFacts, ClusterRow, StoredCluster } from '../../protocol/clusters.ts';
import type { EventsProtocol, EventType, NewEvent } from '../../protocol/events.ts';
import { utcTime } from '../../protocol/timestamps.ts';
import type { Clock, Ref } from '../../runtime/actor.ts';

type Contact = Pick<
  ClusterRow,
  'reachable' | 'authenticated' | 'reason' | 'authenticatedSince' | 'renewalError'
>;

const NO_CONTACT: Contact = {
  reachable: null,
  authenticated: null,
  reason: null,
  authenticatedSince: null,
  renewalError: null,
};

export class ClusterHealth {
  private readonly clock: Clock;
  private readonly events: Ref<EventsProtocol>;
  private readonly cloudEvents: Ref<CloudEventsProtocol>;
  private readonly contacts = new Map<string, Contact>();
  /** What clients have been told last, also about credentials that it had before. */
  private readonly told = new Map<string, Pick<ClusterRow, 'reachable' | 'authenticated'>>();
  /** The expiry that was last warned about, by cluster. */
  private readonly warnedOf = new Map<string, number>();

  constructor(clock: Clock, events: Ref<EventsProtocol>, cloudEvents: Ref<CloudEventsProtocol>) {
    this.clock = clock;
    this.events = events;
    this.cloudEvents = cloudEvents;
  }

  get(id: string): Contact {
    return this.contacts.get(id) ?? NO_CONTACT;
  }

  /** Discards what is known, because the cluster has other credentials. */
  renewed(id: string): void {
    this.contacts.delete(id);
  }

  /** The cluster is gone. */
  forget(id: string): void {
    this.contacts.delete(id);
    this.told.delete(id);
  }

  note({ id, name }: StoredCluster, { reachable, authenticated, reason }: ClusterFacts): void {
    const known = this.get(id);
    // Clients suppose that a cluster is reachable and accepts its account.
    const told = { reachable: true, authenticated: true, ...this.told.get(id) };
    if (reachable !== null && reachable !== told.reachable) {
      told.reachable = reachable;
      this.tellCloud(
        reachable
          ? { type: 'cluster.reachable', clusterId: id }
          : { type: 'cluster.unreachable', clusterId: id, reason: reason ?? null },
      );
    }
    if (authenticated !== undefined && authenticated !== told.authenticated) {
      told.authenticated = authenticated;
      const type = authenticated ? 'cluster.accepted' : 'cluster.refused';
      this.tell(type, name, { name, clusterId: id });
      this.tellCloud({ type, clusterId: id, result: authenticated ? 'ok' : 'cluster_denied' });
    }
    this.told.set(id, told);
    const isNews = authenticated !== undefined && authenticated !== known.authenticated;
    this.contacts.set(id, {
      ...known,
      ...(reachable === null ? {} : { reachable }),
      ...(reason === undefined ? {} : { reason }),
      ...(isNews ? { authenticated, authenticatedSince: this.clock.now() } : {}),
    });
  }

  noteRenewal(id: string, renewalError: string | null): void {
    this.contacts.set(id, { ...this.get(id), renewalError });
  }

  /** Warns of credentials that expire soon, once per start and expiry. */
  warnOfExpiry(rows: Iterable<StoredCluster>): void {
    const now = this.clock.now();
    for (const row of rows) {
      const { id, name, credentialEndsAt } = row;
      const from = expiryWarningTime(row);
      if (!credentialEndsAt || from === null || now < from || this.warnedOf.get(id) === credentialEndsAt)
        continue;
      this.warnedOf.set(id, credentialEndsAt);
      const data = { name, clusterId: id, expiresAt: utcTime(credentialEndsAt) };
      this.tell('cluster.expiring', name, data);
      const reason = `its credentials end at ${data.expiresAt}`;
      this.tellCloud({ type: 'cluster.expiring', clusterId: id, reason });
    }
  }

  private tellCloud(event: NewCloudEvent): void {
    this.cloudEvents.tell('append', { events: [event] });
  }

  private tell(type: EventType, name: string, data: object): void {
    const event: NewEvent = { type, name, run: null, data: JSON.stringify(data) };
    this.events.tell('append', { events: [event] });
  }
}
