// Environments of services at rest: the names stay readable, the values are sealed with the key file of the
// state directory. docs/reference.md "Environment of a process".
//
// Each sealed value names the key that sealed it, so a lost key file may be replaced by a new one: nothing is
// overwritten, and values sealed with the old key open again once its file is restored.
import { randomBytes } from 'node:crypto';
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import type { SealedSecret } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import { completeRecord } from '../../protocol/registration.ts';
import type { StoredService } from '../../protocol/service.ts';
import { isFailure } from '../../runtime/actor.ts';
import { SettingsError } from '../../settings/config.ts';
import { ensureSecret, readSecret } from '../../settings/state_dir.ts';
import { isDiskFull } from './store_file.ts';
import type { Store, StoreTable } from './store_tables.ts';
import { createVault, KEY_BYTES, type Vault, VaultError } from './vault.ts';

const ownerOf = (service: string): string => `env ${service}`;
const baseOwnerOf = (service: string): string => `base-env ${service}`;

/** The vault of a key file, read when it is first needed. */
class EnvironmentKey {
  private readonly path: string;
  private vault: Vault | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** The vault that seals; creates the key file if it is missing. Fails key_unusable, storage_full. */
  ours(): Vault {
    this.vault ??= this.use(() => ensureSecret(this.path, () => randomBytes(KEY_BYTES)));
    return this.vault;
  }

  /** The vault of the key `kek`. Fails key_unusable when the key file has another one, or none. */
  of(kek: string): Vault {
    if (this.vault?.kek === kek) return this.vault;
    const found = this.use(() => readSecret(this.path, 'put the key back'));
    if (found.kek !== kek)
      throw fail('key_unusable', `${this.path} has the key ${found.kek}, and the key ${kek} is needed`);
    this.vault = found;
    return found;
  }

  private use(read: () => Buffer | undefined): Vault {
    try {
      const key = read();
      if (!key) throw new VaultError(`${this.path} is missing`);
      return createVault(key);
    } catch (error) {
      if (!(error instanceof VaultError || error instanceof SettingsError)) throw error;
      throw fail(isDiskFull(error.cause) ? 'storage_full' : 'key_unusable', error.message);
    }
  }
}

/** `<kek>.<wrapped key>.<data>`, the last two in base64url. */
const formatSealed = ({ kek, wrapped, data }: SealedSecret): string =>
  [kek, ...[wrapped, data].map((bytes) => Buffer.from(bytes).toString('base64url'))].join('.');

function parseSealed(text: string): SealedSecret {
  const [kek = '', wrapped = '', data = ''] = text.split('.');
  return { kek, wrapped: Buffer.from(wrapped, 'base64url'), data: Buffer.from(data, 'base64url') };
}

/** Seals and opens the environments in records of services. */
export class EnvironmentSeal {
  private readonly key: EnvironmentKey;

  constructor(keyFile: string) {
    this.key = new EnvironmentKey(keyFile);
  }

  /** The record for the store. A record that could not be opened stays unchanged. Fails key_unusable. */
  seal(given: StoredService): StoredService {
    const stored = this.sealBase(given);
    const { env, name } = stored.spec;
    if (stored.sealedEnv !== undefined || env.length === 0) return stored;
    const sealedEnv = this.sealText(
      ownerOf(name),
      env.map(([, value]) => value),
    );
    const names = env.map(([key]): [string, string] => [key, '']);
    return { ...stored, spec: { ...stored.spec, env: names }, sealedEnv };
  }

  /**
   * The record with its environment, but without the base environment, which few callers need. A record that
   * cannot be opened stays unchanged.
   */
  open(stored: StoredService): StoredService {
    const { sealedEnv: text, ...opened } = stored;
    if (text === undefined) return stored;
    const { env, name } = stored.spec;
    const values = this.openText<string[]>(ownerOf(name), text);
    if (!values) return stored;
    return { ...opened, spec: { ...stored.spec, env: env.map(([key], at) => [key, values[at] ?? '']) } };
  }

  /** The record with its base environment. A record that cannot be opened stays unchanged. */
  openBase(stored: StoredService): StoredService {
    const { hash, sealed } = stored.baseEnv ?? {};
    if (hash === undefined || sealed === undefined) return stored;
    const rows = this.openText<EnvironmentRows>(baseOwnerOf(stored.spec.name), sealed);
    return rows ? { ...stored, baseEnv: { hash, rows } } : stored;
  }

  private sealBase(stored: StoredService): StoredService {
    const { hash, rows } = stored.baseEnv ?? {};
    if (hash === undefined || !rows) return stored;
    return { ...stored, baseEnv: { hash, sealed: this.sealText(baseOwnerOf(stored.spec.name), rows) } };
  }

  private sealText(owner: string, value: unknown): string {
    return formatSealed(this.key.ours().seal(owner, Buffer.from(JSON.stringify(value))));
  }

  /** undefined: the key is missing or different, or the text is damaged. */
  private openText<T>(owner: string, text: string): T | undefined {
    try {
      const sealed = parseSealed(text);
      return JSON.parse(this.key.of(sealed.kek).open(owner, sealed).toString());
    } catch (error) {
      if (isFailure(error) || error instanceof VaultError) return undefined;
      throw error;
    }
  }
}

/** `store`, with the environments of services sealed in it. */
export function withSealedEnvironments(store: Store, seal: EnvironmentSeal): Pick<Store, 'table' | 'loss'> {
  const services = store.table('services');
  const sealed: StoreTable<StoredService> = {
    get: (key) => {
      const stored = services.get(key);
      return stored && completeRecord(seal.openBase(seal.open(stored)));
    },
    all: () => services.all().map(([key, stored]) => [key, completeRecord(seal.open(stored))]),
    put: async (key, stored) => services.put(key, seal.seal(stored)),
    remove: (key) => services.remove(key),
  };
  const table = ((name) => (name === 'services' ? sealed : store.table(name))) as Store['table'];
  return { table, loss: () => store.loss() };
}
