// API tokens and grants: docs/reference.md "API tokens", "Roles and grants".
import type { GrantScope, Role, StoredGrant } from './grants.ts';

/** The stored data of an API token. */
export interface StoredToken {
  id: string;
  name: string;
  /** SHA-256 of the whole text of the token, in base64url. */
  hash: string;
  /** Epoch milliseconds. */
  createdAt: number;
  /** As `who` in the audit log. */
  createdBy: string;
  /** Refused from then on; null: never expires. */
  expiresAt: number | null;
  /** null: never used. May lag by a few minutes. */
  lastUsedAt: number | null;
}

const TOKEN_SUBJECT = 'token:';

/** The subject under which grants to a token are stored. */
export const tokenSubject = (id: string): string => TOKEN_SUBJECT + id;

/** The id of the token that `subject` stands for; null: it stands for a person or a group. */
export const tokenIdOf = (subject: string): string | null =>
  subject.startsWith(TOKEN_SUBJECT) ? subject.slice(TOKEN_SUBJECT.length) : null;

/** The receiver of a grant: a token of this name, or a person or group of the issuer. */
export interface Grantee {
  kind: 'token' | 'user' | 'group';
  name: string;
}

/** A token as `who` in the audit log. */
export const tokenWho = ({ name }: Pick<StoredToken, 'name'>): string => `token:${name}`;

export const TOKEN_NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/**
 * Who requests a change of tokens or grants, from which address and as which operation; for the audit log.
 */
export interface Asker {
  who: string;
  from: string;
  operationId: string | null;
}

/** A requested grant. */
export interface GrantInput extends GrantScope {
  to: Grantee;
  role: Role;
}

/** Owns API tokens and grants. Asks workloads and cloudevents. Sends every change to the views. */
export interface PrincipalsProtocol {
  /**
   * Makes a token. `secret`: its whole text, which cannot be read again. Fails name_in_use, invalid_spec (too
   * many, or an expiry in the past), storage_full.
   */
  createToken(message: { name: string; expiresAt: number | null; by: Asker }): {
    token: StoredToken;
    secret: string;
  };
  /** Removes a token with its grants and tethers. Fails unknown_token, storage_full. */
  revokeToken(message: { name: string; by: Asker }): { removed: true; name: string };
  /**
   * The grant has the id of its operation, so a repeated operation returns the same grant. Fails
   * unknown_token, invalid_spec (too many), storage_full.
   */
  createGrant(message: { input: GrantInput; by: Asker }): StoredGrant;
  /** Fails unknown_grant, storage_full. */
  removeGrant(message: { id: string; by: Asker }): { removed: true; id: string };
  /** From the front, occasionally: the token has been used. */
  used(message: { id: string; at: number }): null;
  /** Whether one of `subjects` may tether the workload. */
  mayTether(message: { subjects: readonly string[]; workloadId: string }): { isAllowed: boolean };
  /**
   * Whether the owners of a tether may keep it. Unlike for `mayTether`, a workload that is missing for the
   * moment takes no rights away.
   */
  mayKeep(message: { owners: readonly string[]; workloadId: string }): { isAllowed: boolean };
  /** From workloads: these have other labels, or are in their clusters again. */
  relabelled(message: { ids: readonly string[] }): null;
}
