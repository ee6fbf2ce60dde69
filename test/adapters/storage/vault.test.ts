import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createVault,
  openVault,
  openVaultOfAny,
  type VaultCanary,
} from '../../../src/adapters/storage/vault.ts';
import type { SealedSecret } from '../../../src/protocol/clusters.ts';

const secret = Buffer.from('{"token":"hunter2"}');
const flip = (bytes: Uint8Array, at: number): Uint8Array =>
  bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));

describe('a vault', () => {
  const mine = createVault(randomBytes(32));

  it('opens what it has sealed, for the same owner', () => {
    const sealed = mine.seal('cluster-1', secret);
    expect(mine.open('cluster-1', sealed)).toEqual(secret);
    expect(Buffer.concat([sealed.data, sealed.wrapped]).includes('hunter2')).toBe(false);
  });

  it('uses a new data key and nonce each time', () => {
    const [one, two] = [mine.seal('c', secret), mine.seal('c', secret)];
    expect(one.data).not.toEqual(two.data);
    expect(one.wrapped).not.toEqual(two.wrapped);
    expect(() => mine.open('c', { ...one, wrapped: two.wrapped })).toThrow(/does not open/);
  });

  it('does not open for another owner, with another key, or when a bit has changed', () => {
    const sealed = mine.seal('cluster-1', secret);
    expect(() => mine.open('cluster-2', sealed)).toThrow(/does not open/);
    const other = createVault(randomBytes(32));
    expect(() => other.open('cluster-1', sealed)).toThrow(/sealed with the key/);
    expect(() => other.open('cluster-1', { ...sealed, kek: other.kek })).toThrow(/does not open/);
    for (const field of ['data', 'wrapped'] as const)
      for (let at = 0; at < sealed[field].length; at += 1)
        expect(() => mine.open('cluster-1', { ...sealed, [field]: flip(sealed[field], at) })).toThrow(
          /does not open/,
        );
    expect(() => mine.open('cluster-1', { ...sealed, data: new Uint8Array(3) })).toThrow(/too short/);
  });

  it('refuses a key of another length', () => {
    expect(() => createVault(randomBytes(31))).toThrow(/32 bytes/);
  });
});

describe('the key file', () => {
  let folder: string;
  let file: string;
  let proof: SealedSecret | null;
  const canary: VaultCanary = {
    read: async () => proof,
    write: async (sealed) => {
      proof ??= sealed;
      return proof;
    },
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-seal-'));
    file = join(folder, 'cloud.key');
    proof = null;
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is created once, with mode 0600, and opens the same secrets afterwards', async () => {
    const sealed = (await openVault(file, canary)).seal('c', secret);
    expect(statSync(file)).toMatchObject({ size: 32 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await openVault(file, canary)).open('c', sealed)).toEqual(secret);
  });

  it('is refused when it is a different one, and nothing is written', async () => {
    await openVault(file, canary);
    const before = proof;
    const wrong = randomBytes(32);
    writeFileSync(file, wrong);
    await expect(openVault(file, canary)).rejects.toThrow(/cloud\.key is not the one that .* is sealed with/);
    expect(readFileSync(file)).toEqual(wrong);
    expect(proof).toBe(before);
  });

  it('is found among several, none of which is created', async () => {
    const sealed = (await openVault(file, canary)).seal('c', secret);
    const [other, absent] = [join(folder, 'other.key'), join(folder, 'absent.key')];
    writeFileSync(other, randomBytes(32), { mode: 0o600 });
    expect((await openVaultOfAny([other, absent, file], canary)).open('c', sealed)).toEqual(secret);
    await expect(openVaultOfAny([other, absent], canary)).rejects.toThrow(
      `sealed with the key ${sealed.kek}, which is not in ${other} or ${absent}`,
    );
    expect(existsSync(absent)).toBe(false);
  });

  it('is not recreated when it is missing', async () => {
    await openVault(file, canary);
    rmSync(file);
    await expect(openVault(file, canary)).rejects.toThrow(/is missing/);
    expect(existsSync(file)).toBe(false);
  });

  it('is refused when it is too short, readable by others, or a link', async () => {
    writeFileSync(file, 'short', { mode: 0o600 });
    await expect(openVault(file, canary)).rejects.toThrow(/32 bytes/);
    writeFileSync(file, randomBytes(32));
    chmodSync(file, 0o644);
    await expect(openVault(file, canary)).rejects.toThrow(/others can read/);
    const link = join(folder, 'link');
    chmodSync(file, 0o600);
    symlinkSync(file, link);
    await expect(openVault(link, canary)).rejects.toThrow();
    expect(proof).toBeNull();
  });
});
