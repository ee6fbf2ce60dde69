// Secrets at rest: AES-256-GCM, each with its own data key, which is wrapped by the key of the key file. This
// protects only a copy of the store alone: with the store and the key file, the secrets can be read.
// docs/reference.md "Clusters".
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { SealedSecret } from '../../protocol/clusters.ts';
import { ensureSecret, readSecret } from '../../settings/state_dir.ts';

/** The length of a key. */
export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Vault {
  /** Identifies the key-encryption key without revealing it. */
  readonly kek: string;
  /** Seals `plaintext` so that it opens for `owner` only. Every call uses a new data key. */
  seal(owner: string, plaintext: Uint8Array): SealedSecret;
  /**
   * Throws a VaultError when the secret was sealed with another key, sealed for another owner, or changed.
   */
  open(owner: string, sealed: SealedSecret): Buffer;
}

/** Why the cloud part is unavailable: the key file does not match the store, or cannot be read. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
}

function encrypt(key: Uint8Array, context: string, plaintext: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Uint8Array, context: string, sealed: Uint8Array): Buffer {
  const tagAt = sealed.length - TAG_BYTES;
  if (tagAt < NONCE_BYTES) throw new VaultError('a sealed record is too short');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(tagAt));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, tagAt)), decipher.final()]);
  } catch {
    throw new VaultError('a sealed record does not open: another key, another owner, or it was changed');
  }
}

/** The vault of one key of 32 bytes. */
export function createVault(key: Uint8Array): Vault {
  if (key.length !== KEY_BYTES)
    throw new VaultError(`the key must have ${KEY_BYTES} bytes, not ${key.length}`);
  const kek = createHash('sha256').update('berth key\0').update(key).digest('hex').slice(0, 16);
  // The owner is part of the authenticated data, so that rows cannot be swapped.
  const context = (owner: string, part: string): string => ['v1', owner, part, kek].join('|');
  return {
    kek,
    seal(owner, plaintext) {
      const dataKey = randomBytes(KEY_BYTES);
      const wrapped = encrypt(key, context(owner, 'key'), dataKey);
      return { kek, wrapped, data: encrypt(dataKey, context(owner, 'data'), plaintext) };
    },
    open(owner, sealed) {
      if (sealed.kek !== kek)
        throw new VaultError(`a record is sealed with the key ${sealed.kek}, not with ${kek}`);
      return decrypt(
        decrypt(key, context(owner, 'key'), sealed.wrapped),
        context(owner, 'data'),
        sealed.data,
      );
    },
  };
}

const CANARY_OWNER = 'canary';
const CANARY = 'berth canary';

/** Proves that a key belongs to the store; kept in the store. */
export interface VaultCanary {
  read(): Promise<SealedSecret | null>;
  /** Writes the proof unless one exists; resolves with the stored one. */
  write(sealed: SealedSecret): Promise<SealedSecret>;
}

/**
 * The vault of a key file (32 raw bytes, 0600). The file is created only when neither it nor the store's
 * canary exists. Throws a VaultError, and writes nothing, when the key is missing or did not seal the store;
 * throws a SettingsError when others can read the file.
 */
export async function openVault(keyFile: string, canary: VaultCanary): Promise<Vault> {
  const proof = await canary.read();
  const key = proof
    ? readSecret(keyFile, 'put the key back that the store was sealed with')
    : ensureSecret(keyFile, () => randomBytes(KEY_BYTES));
  if (!key)
    throw new VaultError(
      `the key file ${keyFile} is missing: the store is sealed with the key ${proof?.kek}`,
    );
  const vault = createVault(key);
  if (proof && proof.kek !== vault.kek)
    throw new VaultError(
      `the key in ${keyFile} is not the one that the store is sealed with: ${vault.kek} instead of ${proof.kek}`,
    );
  const kept = proof ?? (await canary.write(vault.seal(CANARY_OWNER, Buffer.from(CANARY))));
  if (vault.open(CANARY_OWNER, kept).toString() !== CANARY) throw new VaultError('the canary is not ours');
  return vault;
}

/**
 * The vault of the first of `keyFiles` that sealed the store. Throws a VaultError, and writes nothing, when
 * none did; throws a SettingsError when others can read one of the files.
 */
export async function openVaultOfAny(keyFiles: readonly string[], canary: VaultCanary): Promise<Vault> {
  const proof = await canary.read();
  for (const keyFile of keyFiles) {
    const key = readSecret(keyFile, 'put the key back that the store was sealed with');
    if (key && createVault(key).kek === proof?.kek) return openVault(keyFile, canary);
  }
  throw new VaultError(
    `the store is sealed with the key ${proof?.kek}, which is not in ${keyFiles.join(' or ')}`,
  );
}
