// The tokens of agents: docs/reference.md "Agent tokens". Each is derived from a key file and the run of
// the agent's process. So none is stored, and each outlives the daemon.
import { createHmac } from 'node:crypto';
import { type AgentLife, agentKeyId, agentSecretText, formatKey } from '../protocol/access_key.ts';
import { fail } from '../protocol/errors.ts';
import { SettingsError } from '../settings/config.ts';
import { ensureSecret, readSecret } from '../settings/state_dir.ts';

const DISK_FULL: readonly unknown[] = ['ENOSPC', 'EDQUOT'];

/** Makes and checks tokens with the key in `keyFile`, which is read when first needed. */
export class AgentTokens {
  private readonly keyFile: string;
  private key: Buffer | undefined;

  constructor(keyFile: string) {
    this.keyFile = keyFile;
  }

  /** The token of a run. Creates the key file if there is none. Fails key_unusable, storage_full. */
  issue(life: AgentLife): string {
    const id = agentKeyId(life);
    this.key ??= this.use(() => ensureSecret(this.keyFile));
    return formatKey({ id, secret: secretBy(this.key, id) });
  }

  /** The secret of the key `id`; null: no token was ever made. Fails key_unusable. */
  secretOf(id: string): string | null {
    this.key ??= this.use(() => readSecret(this.keyFile));
    return this.key ? secretBy(this.key, id) : null;
  }

  private use<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      const { cause } = error;
      const isFull = cause instanceof Error && 'code' in cause && DISK_FULL.includes(cause.code);
      throw fail(isFull ? 'storage_full' : 'key_unusable', error.message);
    }
  }
}

const secretBy = (key: Buffer, id: string): string =>
  createHmac('sha256', key).update(agentSecretText(id)).digest('base64url');
