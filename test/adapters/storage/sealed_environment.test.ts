// docs/reference.md "Environment of a process".
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EnvironmentSeal, withSealedEnvironments } from '../../../src/adapters/storage/sealed_environment.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import type { StoredService } from '../../../src/protocol/service.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { spec } from '../../kit/service_inputs.ts';

const SECRET = 'correct horse battery';

const service = (name: string, env: [string, string][]): StoredService => ({
  spec: spec({ name, env }),
  revision: 1,
});

/** A store, its key file, and the store as a daemon that has just started sees it. */
function sealedStore() {
  const folder = tempDir();
  const keyFile = join(folder, 'env.key');
  const plain = openStore(join(folder, 'store.mdb'));
  afterThisTest(() => plain.close());
  const started = () => withSealedEnvironments(plain, new EnvironmentSeal(keyFile)).table('services');
  return { keyFile, plain: plain.table('services'), started, file: join(folder, 'store.mdb') };
}

it('a sealed environment has the names in the file, and not the values', async () => {
  const { keyFile, file, started } = sealedStore();
  const web = service('web', [
    ['API_KEY', SECRET],
    ['EMPTY', ''],
  ]);
  await started().put('web', web);
  expect(started().get('web')).toEqual(web);
  expect(started().all()).toEqual([['web', web]]);
  const bytes = readFileSync(file);
  expect(bytes.includes(SECRET)).toBe(false);
  expect(bytes.includes('API_KEY')).toBe(true);
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
});

it('no key file is created for services without environment', async () => {
  const { keyFile, started } = sealedStore();
  await started().put('web', service('web', []));
  expect(existsSync(keyFile)).toBe(false);
});

it('records in clear text are read, and sealed at their next write', async () => {
  const { plain, started } = sealedStore();
  const web = service('web', [['A', SECRET]]);
  await plain.put('web', web);
  expect(started().get('web')).toEqual(web);
  await started().put('web', web);
  expect(plain.get('web')).toMatchObject({ spec: { env: [['A', '']] }, sealedEnv: expect.any(String) });
});

it('a record whose key is lost is listed, stays sealed, and is opened when the key is back', async () => {
  const { keyFile, plain, started } = sealedStore();
  const web = service('web', [['A', SECRET]]);
  await started().put('web', web);
  const atRest = plain.get('web');
  renameSync(keyFile, `${keyFile}.away`);
  const services = started();
  expect(services.all()).toEqual([['web', atRest]]);
  // A change of another field leaves what is sealed as it is.
  await services.put('web', { ...(services.get('web') ?? web), revision: 2 });
  // A new key seals what is registered from now on.
  const api = service('api', [['B', 'b']]);
  await services.put('api', api);
  expect(services.get('api')).toEqual(api);
  expect(services.get('web')).toMatchObject({ sealedEnv: atRest?.sealedEnv });
  renameSync(`${keyFile}.away`, keyFile);
  expect(services.get('web')).toEqual({ ...web, revision: 2 });
  expect(started().get('api')?.sealedEnv).toBeDefined();
});

it('the base environment of a service is sealed, and opened for that service only', async () => {
  const { keyFile, file, started, plain } = sealedStore();
  const baseEnv = { hash: 'h', rows: [['AWS_PROFILE', SECRET]] as [string, string][] };
  const web = { ...service('web', []), baseEnv };
  await started().put('web', web);
  expect(started().get('web')).toEqual(web);
  // The list of all services has it sealed: only a start needs it.
  const [[, listed] = []] = started().all();
  expect(listed?.baseEnv).toEqual({ hash: 'h', sealed: expect.any(String) });
  const bytes = readFileSync(file);
  expect([bytes.includes(SECRET), bytes.includes('AWS_PROFILE')]).toEqual([false, false]);
  if (listed) await started().put('web', { ...listed, revision: 2 });
  expect(started().get('web')).toEqual({ ...web, revision: 2 });
  const { baseEnv: atRest } = plain.get('web') ?? {};
  await plain.put('api', { ...service('api', []), ...(atRest && { baseEnv: atRest }) });
  expect(started().get('api')?.baseEnv).toEqual(atRest);
  rmSync(keyFile);
  expect(started().get('web')?.baseEnv).toEqual(atRest);
});

it('an environment that belongs to another service is not opened', async () => {
  const { plain, started } = sealedStore();
  await started().put('web', service('web', [['A', SECRET]]));
  const { sealedEnv } = plain.get('web') ?? {};
  await plain.put('api', { ...service('api', [['A', '']]), ...(sealedEnv && { sealedEnv }) });
  expect(started().get('api')?.sealedEnv).toBe(sealedEnv);
});

it.each([
  ['others can read', (path: string) => chmodSync(path, 0o644), /others can read it/],
  ['is empty', (path: string) => writeFileSync(path, ''), /is empty: remove it, and a new one is made/],
  ['is too short', (path: string) => writeFileSync(path, 'short'), /32 bytes/],
])('nothing is sealed with a key file that %s', async (_, harm, reason) => {
  const { keyFile, started } = sealedStore();
  const web = service('web', [['A', SECRET]]);
  await started().put('web', web);
  harm(keyFile);
  const services = started();
  const put = services.put('web', web);
  await expect(put).rejects.toMatchObject({ code: 'key_unusable', message: expect.stringMatching(reason) });
  expect(services.get('web')?.sealedEnv).toBeDefined();
  rmSync(keyFile);
  await services.put('web', web);
  expect(services.get('web')).toEqual(web);
});
