// The API tokens and grants as the front knows them: who presents a token, and which connections depend on
// it. docs/reference.md "API tokens".
import { createHash, timingSafeEqual } from 'node:crypto';
import { apiTokenId } from '../../protocol/api_token.ts';
import { grantsBySubject, Principal, type StoredGrant } from '../../protocol/grants.ts';
import { type StoredToken, tokenIdOf, tokenSubject, tokenWho } from '../../protocol/principals.ts';
import type { Clock } from '../../runtime/actor.ts';
import { atTime, systemClock } from '../../runtime/clock.ts';
import { PRINCIPALS } from '../../settings/cloud_limits.ts';

interface KnownToken {
  readonly row: StoredToken;
  readonly hash: Buffer;
  readonly principal: Principal;
  /** The rights that the principal was made from. */
  readonly rights: string;
}

/** A connection that depends on the rights of a principal. */
interface OpenByRights {
  readonly isOpen: boolean;
  /** Cuts it. */
  destroy(): void;
}

interface OpenEntry {
  readonly principal: Principal;
  cancelExpiry(): void;
}

/** A user whose token was signed by an issuer. */
export interface IssuedUser {
  subject: string;
  groups: readonly string[];
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** Verifies an issuer's tokens. */
export interface UserVerifier {
  /** null: the token is invalid. Rejects if the issuer does not answer. */
  verify(token: string): Promise<IssuedUser | null>;
}

interface KnownUser {
  readonly user: IssuedUser;
  readonly principal: Principal;
  readonly rights: string;
}

const MAX_JWT_LENGTH = 8_192;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
/** The most verified tokens to remember. */
const MAX_USERS = 10_000;

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export class Principals {
  /** null: there is no issuer. */
  verifier: UserVerifier | null = null;
  /** Called once the tokens and grants are known. */
  onLoaded: () => void = () => undefined;
  /** Receives the use of a token, occasionally. */
  onUsed: (id: string, at: number) => void = () => undefined;
  /** Whether there may be tokens not loaded yet, because the cloud part has been used before. */
  isExpected = false;
  /** Whether tokens and grants have been loaded. */
  isLoaded = false;
  /** In order of creation. */
  private known = new Map<string, KnownToken>();
  private grantRows: readonly StoredGrant[] = [];
  private grantsOf = grantsBySubject([]);
  /** When the last use of each was reported (epoch milliseconds). */
  private readonly toldAt = new Map<string, number>();
  private readonly lastUsed = new Map<string, number>();
  private readonly open = new Map<OpenByRights, OpenEntry>();
  /** Keyed by the hash of the token. */
  private users = new Map<string, KnownUser>();
  private readonly clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
  }

  /** Replaces all tokens and grants, and cuts the connections whose rights have changed. */
  set({ tokens, grants }: { tokens: readonly StoredToken[]; grants: readonly StoredGrant[] }): void {
    const before = this.known;
    this.grantRows = grants;
    this.grantsOf = grantsBySubject(grants);
    this.known = new Map(tokens.map((row) => [row.id, this.knownToken(row, before.get(row.id))]));
    this.users = new Map(
      [...this.users].map(([hash, { user }]) => [hash, this.knownUser(user, this.users.get(hash))]),
    );
    const current = new Set(this.live());
    for (const [opened, { principal }] of this.open)
      if (!current.has(principal) || !opened.isOpen) this.cut(opened);
    const wasLoaded = this.isLoaded;
    this.isLoaded = true;
    if (!wasLoaded && tokens.length > 0) this.onLoaded();
  }

  /** The principal for the token `given`; null: it is not valid. */
  find(given: string): Principal | null {
    const token = this.known.get(apiTokenId(given) ?? '');
    if (!token) return null;
    const hash = sha256(given);
    if (!timingSafeEqual(hash, token.hash) || !this.isLive(token.row)) return null;
    this.noteUse(token.row.id);
    return token.principal;
  }

  /** Whether there is an issuer and `given` has the form of its tokens. */
  isIssuedForm(given: string): boolean {
    return this.verifier !== null && given.length <= MAX_JWT_LENGTH && JWT.test(given);
  }

  /** Whether `given` may be an issuer's token that has not been verified yet. */
  isUnverified(given: string): boolean {
    return this.isLoaded && this.isIssuedForm(given) && !this.findUser(given);
  }

  /** Verifies an issuer's token, so that `findUser` knows it. Rejects if the issuer does not answer. */
  async verify(given: string): Promise<void> {
    const user = await this.verifier?.verify(given);
    if (!user) return;
    const [oldest] = this.users.keys();
    if (oldest !== undefined && this.users.size >= MAX_USERS) this.users.delete(oldest);
    const hash = sha256(given).toString('base64url');
    // Several requests at once each verify it. Streams opened by the first one must stay open.
    this.users.set(hash, this.knownUser(user, this.users.get(hash)));
  }

  /** The principal for the verified issuer token `given`; null: unknown or expired. */
  findUser(given: string): Principal | null {
    const hash = sha256(given).toString('base64url');
    const known = this.users.get(hash);
    if (!known) return null;
    if (known.user.expiresAt > this.clock.now()) return known.principal;
    this.users.delete(hash);
    return null;
  }

  /** The hash of a token; null: there is no token with this id. */
  hashOf(id: string): string | null {
    const row = this.known.get(id)?.row;
    return row && this.isLive(row) ? row.hash : null;
  }

  /** Cuts `opened` when the rights of `principal` change. */
  addOpen(principal: Principal, opened: OpenByRights): void {
    for (const [other] of this.open) if (!other.isOpen) this.cut(other);
    const { until } = principal;
    const cut = (): void => this.cut(opened);
    const cancelExpiry = until === null ? () => undefined : atTime(this.clock, until, PRINCIPALS.lookMs, cut);
    this.open.set(opened, { principal, cancelExpiry });
    // The rights may have changed during the request.
    if (this.isStale(principal)) cut();
  }

  tokens(): StoredToken[] {
    return [...this.known.values()].map(({ row }) => ({
      ...row,
      lastUsedAt: Math.max(row.lastUsedAt ?? 0, this.lastUsed.get(row.id) ?? 0) || null,
    }));
  }

  grants(): readonly StoredGrant[] {
    return this.grantRows;
  }

  /** The name of the token with grant subject `subject`; null: there is none. */
  tokenNameOf(subject: string): string | null {
    return this.known.get(tokenIdOf(subject) ?? '')?.row.name ?? null;
  }

  private isStale(principal: Principal): boolean {
    return !this.live().includes(principal);
  }

  private cut(opened: OpenByRights): void {
    this.open.get(opened)?.cancelExpiry();
    this.open.delete(opened);
    if (opened.isOpen) opened.destroy();
  }

  private isLive({ expiresAt }: StoredToken): boolean {
    return expiresAt === null || expiresAt > this.clock.now();
  }

  private live(): Principal[] {
    return [
      ...[...this.known.values()].filter(({ row }) => this.isLive(row)),
      ...[...this.users.values()].filter(({ user }) => user.expiresAt > this.clock.now()),
    ].map(({ principal }) => principal);
  }

  private knownUser(user: IssuedUser, before: KnownUser | undefined): KnownUser {
    const groups = new Set(user.groups);
    const subjects = [`user:${user.subject}`, ...[...groups].map((group) => `group:${group}`)];
    const grants = subjects.flatMap((subject) => this.grantsOf.get(subject) ?? []);
    const rights = JSON.stringify(grants);
    if (before?.rights === rights) return before;
    const who = `user:${user.subject}`;
    const principal = new Principal({ subjects, who, since: 0, until: user.expiresAt }, grants);
    return { user, principal, rights };
  }

  private knownToken(row: StoredToken, before: KnownToken | undefined): KnownToken {
    const subject = tokenSubject(row.id);
    const grants = this.grantsOf.get(subject) ?? [];
    const rights = JSON.stringify([row.name, row.expiresAt, grants]);
    const principal =
      before?.rights === rights
        ? before.principal
        : new Principal(
            { subjects: [subject], who: tokenWho(row), since: row.createdAt, until: null },
            grants,
          );
    return { row, hash: Buffer.from(row.hash, 'base64url'), principal, rights };
  }

  private noteUse(id: string): void {
    const now = this.clock.now();
    this.lastUsed.set(id, now);
    if (now - (this.toldAt.get(id) ?? 0) < PRINCIPALS.usedMs) return;
    this.toldAt.set(id, now);
    this.onUsed(id, now);
  }
}
