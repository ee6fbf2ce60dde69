// The keys of one half of the API (daemon or cloud): its token, and everything derived from it.
// docs/reference.md "Server authentication", "Dashboard sessions", "Agent tokens".
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  type AccessKey,
  type AgentLife,
  bearerText,
  clientSignatureText,
  formatBearer,
  hostSignatureText,
  isAgentForm,
  NONCE_PATTERN,
  parseAgentKeyId,
  parseBearer,
  parseKey,
  proofText,
  TOKEN_KEY_ID,
} from '../../protocol/access_key.ts';
import { apiTokenOfKey } from '../../protocol/api_token.ts';
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { PAGE } from '../../settings/limits.ts';
import { type Caller, USER } from './caller.ts';
import { ShareTokens, shareIdIn } from './share_tokens.ts';

const randomText = (bytes: number): string => randomBytes(bytes).toString('base64url');

const hmac = (secret: string, text: string): string =>
  createHmac('sha256', secret).update(text).digest('base64url');

/** A text that is compared in constant time. An empty text equals nothing. */
class Secret {
  private readonly expected: Buffer;
  /** Buffer for the received text, always as long as the expected one. */
  private readonly given: Buffer;

  constructor(text: string) {
    this.expected = Buffer.from(text, 'latin1');
    this.given = Buffer.alloc(this.expected.length);
  }

  equals(text: string): boolean {
    this.given.fill(0);
    this.given.write(text, 'latin1');
    return timingSafeEqual(this.given, this.expected) && text.length === this.expected.length && text !== '';
  }
}

/** The time of creation (seconds since the epoch, in base 36), and random characters. */
const PAGE_ID = /^page-([0-9a-z]{1,9})-[A-Za-z0-9_-]{16}$/;
const LIVE_PAGE_ID = /^live-(page-.*)$/;

/** A code that has not been used yet. */
interface OpenCode {
  secret: string;
  /** By the wall clock. A timer ends it by the monotonic one, which may stand still. */
  expiresAt: number;
  /** Called when the code is used, expires or is withdrawn. */
  onGone: () => void;
}

/** The source of the secrets of agents' keys. */
interface AgentSecrets {
  /** null: there is no key with this id. */
  secretOf(id: string): string | null;
}
/** Looks up the hashes of API tokens. */
interface TokenHashes {
  /** null: there is no token with this id. */
  hashOf(id: string): string | null;
}
const NO_TOKENS: TokenHashes = { hashOf: () => null };
const NO_AGENTS: AgentSecrets = { secretOf: () => null };

export class AccessKeys {
  /** The tokens of this half of the API that give access to a single terminal. */
  readonly shares: ShareTokens;
  private readonly clock: Clock;
  private readonly agents: AgentSecrets;
  private readonly tokens: TokenHashes;
  /** Bearers are derived from it, so they end with the daemon. */
  private readonly life = randomText(16);
  private readonly codes = new Map<string, OpenCode>();
  private token = '';
  /** The token, and the bearer derived from it. */
  private accepted: readonly Secret[] = [];

  /** Without `agents`, agents have no keys here; without `tokens`, there are no API tokens. */
  constructor(
    token: string,
    clock: Clock,
    agents: AgentSecrets = NO_AGENTS,
    tokens: TokenHashes = NO_TOKENS,
  ) {
    this.clock = clock;
    this.agents = agents;
    this.tokens = tokens;
    this.shares = new ShareTokens(clock);
    this.reload(token);
  }

  /** Whether a token is required. */
  get isRequired(): boolean {
    return this.token !== '';
  }

  /** Sets the token; false: it is unchanged. Everything derived from the old token becomes invalid. */
  reload(token: string): boolean {
    if (token === this.token) return false;
    this.withdrawCodes();
    this.shares.endAll();
    this.token = token;
    this.accepted = [token, formatBearer(TOKEN_KEY_ID, hmac(token, bearerText(this.life)))].map(
      (text) => new Secret(text),
    );
    return true;
  }

  /**
   * Whether `given` is the token, its bearer, or the bearer of a page's key. An empty token accepts nothing.
   */
  accepts(given: string): boolean {
    if (!this.isRequired) return false;
    if (this.accepted.some((secret) => secret.equals(given))) return true;
    return given.startsWith('berth.page-') && this.isBearer(given);
  }

  /**
   * The caller who presents `given`; null: it is not valid. A share token gives its few rights even where no
   * token is required, and none once its share has ended. The token of an agent restricts its holder in the
   * same way.
   */
  callerOf(given: string): Caller | null {
    if (isAgentForm(given) && !this.accepts(given)) {
      const life = this.agentOf(given);
      return life && { kind: 'agent', life };
    }
    const id = shareIdIn(given);
    if (id === null) return !this.isRequired || this.accepts(given) ? USER : null;
    const { share, secret } = this.shares.find(id) ?? { share: null, secret: '' };
    const isKnown = [`${id}.${secret}`, formatBearer(id, hmac(secret, bearerText(this.life)))].some((text) =>
      new Secret(text).equals(given),
    );
    return share && isKnown ? { kind: 'share', share } : null;
  }

  /**
   * The agent to which the token or bearer `given` belongs, whether or not it is still running. null: no
   * agent's. Fails key_unusable.
   */
  agentOf(given: string): AgentLife | null {
    if (!isAgentForm(given)) return null;
    const { id, secret } = parseKey(given) ?? { id: parseBearer(given)?.id ?? '', secret: null };
    const life = parseAgentKeyId(id);
    if (!life) return null;
    if (secret === null) return this.isBearer(given) ? life : null;
    const expected = this.agents.secretOf(id);
    return expected !== null && new Secret(expected).equals(secret) ? life : null;
  }

  /**
   * The answer to a client that asks whether this is its daemon. Throws invalid_spec, and unauthorized for an
   * unknown key.
   */
  prove(host: string, { nonce, key }: { nonce: string | null; key: string | null }) {
    if (nonce === null || !NONCE_PATTERN.test(nonce))
      throw fail('invalid_spec', 'nonce must be 22 to 86 characters of base64url');
    const { life } = this;
    const id = key ?? TOKEN_KEY_ID;
    const shared = this.shares.find(id);
    // Agents and shares have tokens whether or not one is required.
    if (!this.isRequired && !shared && !parseAgentKeyId(id)) return { proof: null, life };
    const apiToken = apiTokenOfKey(id);
    const own = apiToken === null ? this.secretOf(id) : this.tokens.hashOf(apiToken);
    const secret = shared?.secret ?? own;
    if (secret === null) {
      const kind = apiToken === null ? 'unknown key: it was already used' : 'unknown token: it was revoked';
      throw fail('unauthorized', `${kind}, or has expired`);
    }
    return { proof: hmac(secret, proofText(nonce, host, life)), life };
  }

  /** Signs that a client has asked this server for a proof at `host`. */
  signHost(host: string, nonce: string): string {
    return hmac(this.token, hostSignatureText(nonce, host));
  }

  /** Whether `given` is such a signature, of a server with the same token. */
  isHostSignature(given: string, host: string, nonce: string): boolean {
    return this.isRequired && new Secret(this.signHost(host, nonce)).equals(given);
  }

  /** The address of a client whose request this server forwards, with its signature. */
  signClient(address: string): string {
    return `${address} ${hmac(this.token, clientSignatureText(address))}`;
  }

  /** The address in such a text, if a server with the same token has signed it; else null. */
  signedClient(given: string): string | null {
    const [address = '', signature] = given.split(' ');
    if (!this.isRequired || signature === undefined) return null;
    return new Secret(this.signClient(address)).equals(given) ? address : null;
  }

  /** Makes a one-time code. `onGone`: it was used, has expired or was withdrawn. */
  createCode(onGone: (id: string) => void): AccessKey {
    const id = `code-${randomText(12)}`;
    const [oldest] = this.codes.keys();
    if (oldest !== undefined && this.codes.size >= PAGE.maxCodes) this.withdraw(oldest);
    const cancel = this.clock.after(PAGE.codeMs, () => this.withdraw(id));
    const secret = randomText(32);
    this.codes.set(id, {
      secret,
      expiresAt: this.clock.now() + PAGE.codeMs,
      onGone: () => {
        cancel();
        onGone(id);
      },
    });
    return { id, secret };
  }

  /**
   * A new key for a page that presents the bearer of a code (which is used up), of the token, or of an
   * earlier key. Throws unauthorized.
   */
  openSession(given: string): AccessKey {
    const { id = '' } = parseBearer(given) ?? {};
    if (!this.accepts(given) && (parseAgentKeyId(id) || !this.isBearer(given)))
      throw fail('unauthorized', 'unknown code: it was already used, or has expired');
    this.withdraw(id);
    const expires = Math.floor((this.clock.now() + PAGE.sessionMs) / 1000);
    const page = `page-${expires.toString(36)}-${randomText(12)}`;
    return { id: page, secret: this.pageSecret(page) };
  }

  /** Ends every code. */
  withdrawCodes(): void {
    for (const id of [...this.codes.keys()]) this.withdraw(id);
  }

  private withdraw(id: string): void {
    const code = this.codes.get(id);
    this.codes.delete(id);
    code?.onGone();
  }

  /** Derived rather than stored: it outlives the daemon, and ends with the token. */
  private pageSecret(id: string): string {
    return hmac(this.token, `berth page\n${id}`);
  }

  /** The secret of a key; null if there is no such id, or the key has expired. */
  private secretOf(id: string): string | null {
    if (id === TOKEN_KEY_ID) return this.token;
    const page = LIVE_PAGE_ID.exec(id)?.[1];
    if (page !== undefined) {
      const secret = this.secretOf(page);
      return secret && hmac(secret, bearerText(this.life));
    }
    if (parseAgentKeyId(id)) return this.agents.secretOf(id);
    const expires = PAGE_ID.exec(id)?.[1];
    if (expires === undefined) {
      const code = this.codes.get(id);
      return code && code.expiresAt > this.clock.now() ? code.secret : null;
    }
    return Number.parseInt(expires, 36) * 1000 > this.clock.now() ? this.pageSecret(id) : null;
  }

  /** Whether `given` is a bearer of any key. */
  private isBearer(given: string): boolean {
    const bearer = parseBearer(given);
    const secret = bearer && this.secretOf(bearer.id);
    return Boolean(secret) && new Secret(hmac(secret ?? '', bearerText(this.life))).equals(bearer?.mac ?? '');
  }
}
