// A tab's session with the daemon that served it: docs/reference.md "Dashboard sessions".
import { access } from '../api/access.ts';
import { type AccessKey, formatKey, parseKey, storableKey, TOKEN_KEY_ID } from '../protocol/access_key.ts';
import { call, DEFAULT_DEADLINE_MS } from './api_call.ts';
import { type Client, createClient } from './create_client.ts';
import { BerthError, isBerthError } from './errors.ts';
import { createFetchTransport } from './fetch_transport.ts';

const STORED_KEY = 'berth.key';

/** Explains a wrong key: the server sent the page itself, so it is unlikely to be a stranger's. */
function toSessionError(error: unknown): never {
  const isWrongKey = isBerthError(error) && (error.code === 'unproven' || error.status === 401);
  if (!isWrongKey) throw error;
  const hint = '`berth open` in a terminal begins a new one.';
  throw new BerthError(
    'unproven',
    'the code or the session of this tab has ended',
    { hint },
    { cause: error },
  );
}

export class PageSession {
  readonly client: Client;
  /** Kept only in this tab's memory; null: not entered. */
  cloudToken: string | null = null;
  private readonly origin: string;
  private readonly storage: Storage;
  /** Kept only in this tab's memory. */
  private key: AccessKey | null = null;
  private readonly transport = createFetchTransport((bearer) => {
    const key = storableKey(bearer);
    if (key) this.storage.setItem(STORED_KEY, formatKey(key));
  });

  /** `origin`: of the daemon that served the page. `storage`: the tab's, which survives a reload. */
  constructor(origin: string, storage: Storage) {
    this.origin = origin;
    this.storage = storage;
    this.client = createClient(this.transport, {
      url: origin,
      key: () => this.key,
      cloudToken: () => this.cloudToken,
    });
  }

  /** Begins with the code in a URL fragment, or (null) with what the tab stored before a reload. */
  async resume(code: string | null): Promise<void> {
    const key = parseKey(code ?? this.storage.getItem(STORED_KEY) ?? '');
    if (key) await this.open(key).catch(toSessionError);
  }

  /** Begins with the daemon's token. */
  login(token: string): Promise<void> {
    return this.open({ id: TOKEN_KEY_ID, secret: token });
  }

  /**
   * Exchanges `key` for one of this tab. Rejects with a BerthError, and then forgets the tab's earlier key.
   */
  private async open(key: AccessKey): Promise<void> {
    this.storage.removeItem(STORED_KEY);
    const endpoint = {
      transport: this.transport,
      url: () => this.origin,
      // The page has just come from this server, which may have no token by now.
      access: () => ({ key, proofPath: access.prove.path, asksTokenless: true }),
      deadlineMs: DEFAULT_DEADLINE_MS,
      busyRetryMs: 0,
    };
    const made = await call(endpoint, access.openPageSession, {});
    this.key = made.key === null ? null : parseKey(made.key);
  }
}
