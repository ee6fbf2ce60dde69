// State: API tokens and grants. Rebuilt from: the store.
import { createHash, randomBytes } from 'node:crypto';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import { formatApiToken } from '../../protocol/api_token.ts';
import type { CloudEventType, CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import { fail } from '../../protocol/errors.ts';
import { grantsBySubject, Principal, type StoredGrant } from '../../protocol/grants.ts';
import {
  type Asker,
  type GrantInput,
  type PrincipalsProtocol,
  type StoredToken,
  tokenIdOf,
  tokenSubject,
} from '../../protocol/principals.ts';
import { newUlid } from '../../protocol/ulid.ts';
import { actor, type Context, type Handlers, tolerateFailure } from '../../runtime/actor.ts';
import { atTime } from '../../runtime/clock.ts';
import { PRINCIPALS } from '../../settings/cloud_limits.ts';

export interface PrincipalsConfig {
  store: Pick<
    CloudStore,
    'tokens' | 'saveToken' | 'removeToken' | 'grants' | 'saveGrant' | 'removeGrant' | 'tethers'
  >;
  /** Whether there is a relay. */
  hasRelay: boolean;
}

const SECRET_BYTES = 32;

const scopeText = ({ clusterId, namespace, labels }: StoredGrant): string =>
  [
    clusterId === null ? 'all clusters' : `cluster ${clusterId}`,
    ...(namespace === null ? [] : [`namespace ${namespace}`]),
    ...(labels === null ? [] : [`selector ${labels}`]),
  ].join(', ');

class Principals {
  private readonly context: Context;
  private readonly config: PrincipalsConfig;
  /** By id. */
  private readonly tokens = new Map<string, StoredToken>();
  private readonly grants = new Map<string, StoredGrant>();
  /** null: the grants have changed since. */
  private grantsOf: ReturnType<typeof grantsBySubject> | null = null;
  private cancelExpiry: () => void = () => undefined;

  constructor(context: Context, config: PrincipalsConfig) {
    this.context = context;
    this.config = config;
    context.scope.defer(() => this.cancelExpiry());
  }

  async load(): Promise<void> {
    const { store } = this.config;
    for (const row of await store.tokens()) this.tokens.set(row.id, row);
    for (const row of await store.grants()) this.grants.set(row.id, row);
    this.tellViews();
    // Those that expired while the daemon was off or shutting down.
    await this.endTethers();
    this.awaitExpiry();
  }

  async createToken(name: string, expiresAt: number | null, by: Asker) {
    const now = this.context.clock.now();
    if (this.findToken(name)) throw fail('name_in_use', `there is a token ${name} already`);
    if (this.tokens.size >= PRINCIPALS.maxTokens)
      throw fail('invalid_spec', `there are ${PRINCIPALS.maxTokens} tokens already`);
    if (expiresAt !== null && expiresAt <= now) {
      const message = 'expires_at must be in the future';
      throw fail('invalid_spec', message, { details: [{ path: 'expires_at', message }] });
    }
    const id = newUlid(now);
    const secret = formatApiToken(id, randomBytes(SECRET_BYTES).toString('base64url'));
    const hash = createHash('sha256').update(secret).digest('base64url');
    const token = { id, name, hash, createdAt: now, createdBy: by.who, expiresAt, lastUsedAt: null };
    const until = expiresAt === null ? '' : `, until ${new Date(expiresAt).toISOString()}`;
    const event = this.eventOf('token.created', by, `token ${name}${until}`);
    await this.config.store.saveToken(token, [event]);
    this.tokens.set(id, token);
    this.tellViews();
    this.awaitExpiry();
    await this.journaled();
    return { token, secret };
  }

  async revokeToken(name: string, by: Asker) {
    const { id } = this.token(name);
    const subject = tokenSubject(id);
    const event = this.eventOf('token.revoked', by, `token ${name}`);
    await this.config.store.removeToken(id, subject, [event]);
    this.tokens.delete(id);
    for (const grant of [...this.grants.values()])
      if (grant.subject === subject) this.grants.delete(grant.id);
    await this.applyLoss(subject);
    await this.journaled();
    return { removed: true as const, name };
  }

  async createGrant({ to, role, clusterId, namespace, labels }: GrantInput, by: Asker) {
    const known = this.grants.get(by.operationId ?? '');
    if (known) return known;
    const subject = to.kind === 'token' ? tokenSubject(this.token(to.name).id) : `${to.kind}:${to.name}`;
    if (this.grants.size >= PRINCIPALS.maxGrants)
      throw fail('invalid_spec', `there are ${PRINCIPALS.maxGrants} grants already`);
    const now = this.context.clock.now();
    const scope = { clusterId, namespace, labels };
    // A retry of the operation finds its grant by this id.
    const id = by.operationId ?? newUlid(now);
    const row: StoredGrant = { id, subject, role, ...scope, createdAt: now, createdBy: by.who };
    const event = this.eventOf('grant.created', by, `${to.kind} ${to.name}: ${role} of ${scopeText(row)}`);
    await this.config.store.saveGrant(row, [event]);
    this.grants.set(row.id, row);
    this.tellViews();
    await this.journaled();
    return row;
  }

  async removeGrant(id: string, by: Asker) {
    const row = this.grants.get(id);
    if (!row) throw fail('unknown_grant', `there is no grant ${id}`);
    const reason = `${this.textOf(row.subject)}: ${row.role} of ${scopeText(row)}`;
    await this.config.store.removeGrant(id, [this.eventOf('grant.removed', by, reason)]);
    this.grants.delete(id);
    await this.applyLoss(row.subject);
    await this.journaled();
    return { removed: true as const, id };
  }

  async used(id: string, at: number): Promise<null> {
    const token = this.tokens.get(id);
    if (!token || at <= (token.lastUsedAt ?? 0)) return null;
    const used = { ...token, lastUsedAt: at };
    this.tokens.set(id, used);
    // A full disk must not make a valid token fail.
    await tolerateFailure(this.config.store.saveToken(used, []), () => undefined);
    return null;
  }

  async mayTether(subjects: readonly string[], workloadId: string): Promise<boolean> {
    const place = await this.context.ref('workloads').ask('placeOf', { id: workloadId });
    // Rights may have expired meanwhile.
    return place !== null && (this.principalOf(subjects)?.may('waker', place) ?? false);
  }

  /** The principal for the subjects that still exist; null: none of them does. */
  private principalOf(subjects: readonly string[]): Principal | null {
    const live = subjects.filter((subject) => this.isLive(subject));
    this.grantsOf ??= grantsBySubject(this.grants.values());
    const { grantsOf } = this;
    const grants = live.flatMap((subject) => grantsOf.get(subject) ?? []);
    return live.length === 0
      ? null
      : new Principal({ subjects: live, who: '', since: 0, until: null }, grants);
  }

  private tokenOf(subject: string): StoredToken | undefined {
    return this.tokens.get(tokenIdOf(subject) ?? '');
  }

  private textOf(subject: string): string {
    const token = this.tokenOf(subject);
    return token ? `token ${token.name}` : subject.replace(':', ' ');
  }

  /** Whether a subject still exists. People and groups are managed by the issuer, so they always count. */
  private isLive(subject: string): boolean {
    if (tokenIdOf(subject) === null) return true;
    const token = this.tokenOf(subject);
    return token !== undefined && (token.expiresAt ?? Number.POSITIVE_INFINITY) > this.context.clock.now();
  }

  private findToken(name: string): StoredToken | undefined {
    return [...this.tokens.values()].find((token) => token.name === name);
  }

  private token(name: string): StoredToken {
    const found = this.findToken(name);
    if (!found) throw fail('unknown_token', `there is no token ${name}`);
    return found;
  }

  /** Ends everything that relied on rights `subject` no longer has. */
  private async applyLoss(subject: string): Promise<void> {
    this.tellViews();
    if (this.config.hasRelay) this.context.ref('relay').tell('rightsChanged', { subject });
    await this.endTethers();
  }

  /** Ends the tethers whose owners have lost the right to them; `workloads`: only those to them. */
  private async endTethers(workloads?: ReadonlySet<string>): Promise<void> {
    const ids: string[] = [];
    for (const { id, owners, workloadId } of await this.config.store.tethers())
      if (owners && (workloads?.has(workloadId) ?? true) && !(await this.mayKeep(owners, workloadId)))
        ids.push(id);
    if (ids.length > 0) this.context.ref('tethers').tell('revoked', { ids });
  }

  /** Ends what relied on rights to these workloads by the labels that they had. */
  async relabelled(ids: readonly string[]): Promise<null> {
    if (![...this.grants.values()].some(({ labels }) => labels !== null)) return null;
    if (this.config.hasRelay) this.context.ref('relay').tell('relabelled', { ids });
    await this.endTethers(new Set(ids));
    return null;
  }

  /** See PrincipalsProtocol. */
  async mayKeep(owners: readonly string[], workloadId: string): Promise<boolean> {
    const principal = this.principalOf(owners);
    if (!principal) return false;
    const place = await this.context.ref('workloads').ask('placeOf', { id: workloadId });
    return place === null || principal.may('waker', place);
  }

  private awaitExpiry(): void {
    this.cancelExpiry();
    const { clock } = this.context;
    const now = clock.now();
    const next = Math.min(
      ...[...this.tokens.values()].flatMap(({ expiresAt }) =>
        expiresAt !== null && expiresAt > now ? [expiresAt] : [],
      ),
    );
    if (!Number.isFinite(next)) return;
    this.cancelExpiry = atTime(clock, next, PRINCIPALS.lookMs, () => {
      this.onExpiry(now).catch((error: unknown) => this.context.crash(error));
    });
  }

  /** Ends everything that relied on tokens which expired after `since`. */
  private async onExpiry(since: number): Promise<void> {
    const now = this.context.clock.now();
    const expired = [...this.tokens.values()].filter(
      ({ expiresAt }) => expiresAt !== null && expiresAt > since && expiresAt <= now,
    );
    this.awaitExpiry();
    for (const { id } of expired) await this.applyLoss(tokenSubject(id));
  }

  /** To be called in the turn of a change. */
  private tellViews(): void {
    this.grantsOf = null;
    const rows = { tokens: [...this.tokens.values()], grants: [...this.grants.values()] };
    this.context.ref('cloudviews').tell('principals', rows);
  }

  /** An event to be committed with the change that it reports. `workloads` copies it to the journal. */
  private eventOf(type: CloudEventType, by: Asker, reason: string): CommittedCloudEvent {
    const at = this.context.clock.now();
    const { who, from, operationId } = by;
    return { key: newUlid(at), at, event: { type, who, from, operationId, reason } };
  }

  /** Resolves when the journal has written what it got so far, so that an answer never precedes its event. */
  private async journaled(): Promise<void> {
    await tolerateFailure(this.context.ref('cloudevents').ask('append', { events: [] }), () => null);
  }
}

async function init(context: Context, config: PrincipalsConfig): Promise<Handlers<PrincipalsProtocol>> {
  const principals = new Principals(context, config);
  await principals.load();
  // One change at a time, because names are unique and the views must get changes in order.
  const change = <R>(work: () => Promise<R>) => context.turn('principals', work);
  return {
    createToken: ({ name, expiresAt, by }) => change(() => principals.createToken(name, expiresAt, by)),
    revokeToken: ({ name, by }) => change(() => principals.revokeToken(name, by)),
    createGrant: ({ input, by }) => change(() => principals.createGrant(input, by)),
    removeGrant: ({ id, by }) => change(() => principals.removeGrant(id, by)),
    used: ({ id, at }) => change(() => principals.used(id, at)),
    mayTether: ({ subjects, workloadId }) =>
      context.replyLater(principals.mayTether(subjects, workloadId).then((isAllowed) => ({ isAllowed }))),
    mayKeep: ({ owners, workloadId }) =>
      context.replyLater(principals.mayKeep(owners, workloadId).then((isAllowed) => ({ isAllowed }))),
    relabelled: ({ ids }) => context.turn('relabelled', () => principals.relabelled(ids)),
  };
}

/** At `principals`: see PrincipalsProtocol. */
export const principalsActor = actor<PrincipalsProtocol, PrincipalsConfig>('principals', init);
