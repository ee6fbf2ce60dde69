// The account that Berth has made for it, on the real cluster: its rights are enough and no more, and it renews
// its own token.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ALL_NAMESPACES,
  accountManifest,
  accountName,
  accountObjects,
  objectName,
  removalCommands,
} from '../../../src/adapters/kube/account_manifest.ts';
import { openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import {
  accountUser,
  applyManifest,
  findAccount,
  listedGrants,
  noteAccountUser,
  removeManifest,
  requestToken,
  tokenRenewal,
} from '../../../src/adapters/kube/service_account.ts';
import { withUserCluster } from '../../../src/adapters/kubeconfig/user_cluster.ts';
import type { ServiceAccountName } from '../../../src/protocol/cluster_account.ts';
import { realTime, virtualClock } from '../../kit/actors.ts';
import { ANY, cloud, clusterInput, eventually } from '../../kit/cloud.ts';
import { kubeconfigFor } from '../../kit/kube_accounts.ts';
import type { Json } from '../../kit/kube_double.ts';
import { api, describeReal, kubeconfig, sandbox, sleeper } from '../../kit/kube_real.ts';

const LIFETIME_S = 600;

describe('the name of the account', () => {
  it('is valid in Kubernetes, whatever the names of user and host', () => {
    expect(accountName('Ada', 'laptop.local', null)).toBe('berth-ada-laptop-local');
    expect(accountName('CORP\\jörg', '-', null)).toBe('berth-corp-j-rg');
    expect(accountName('a'.repeat(200), 'b', null)).toMatch(/^[a-z-]{1,50}$/);
  });

  it('is another one for each server', () => {
    const servers = [null, 'https://berth.example.com', 'https://berth.example.com:8443'];
    const names = servers.map((server) => accountName('a'.repeat(200), 'b', server));
    expect(new Set(names).size).toBe(3);
    for (const name of names) expect(name).toMatch(/^[a-z0-9-]{1,50}$/);
  });
});

it('an account shares no object with one of the same name in another namespace', () => {
  const objects = [['web', 'data'], ['data', 'web'], ['db', 'data', 'web'], ['data'], null].map(
    (namespaces) => accountManifest('berth-ada', namespaces).map(objectName),
  );
  const all = objects.flat();
  expect(all).toContain('RoleBinding data/berth-ada.web');
  // `['data']` and `['data', 'web']` have the account itself in common.
  const [, one = [], , other = []] = objects;
  const shared = one.filter((name) => other.includes(name));
  expect(new Set(all).size).toBe(all.length - shared.length);
  for (const manifest of [['web', 'data'], null].map((namespaces) =>
    accountManifest('berth-ada', namespaces),
  ))
    for (const { kind, metadata, roleRef } of manifest as Json[])
      if (kind.endsWith('Binding')) expect(roleRef.name).toBe(metadata.name);
});

/** As people call it, with `input` as a manifest. Throws what it prints when it fails. */
const kubectl = (args: string[], input?: object): string =>
  execFileSync('kubectl', ['--kubeconfig', process.env['BERTH_TEST_KUBECONFIG'] ?? '', ...args], {
    ...{ encoding: 'utf8', input: JSON.stringify(input) },
  });

describeReal('an account of its own', () => {
  const box = sandbox();
  const name = accountName('test', randomBytes(4).toString('hex'), null);
  const asAdmin: typeof withUserCluster = (_, work) => withUserCluster(kubeconfig(), work);

  /** Makes the account and returns a token of it. An account of before may be going with its namespace. */
  const made = (namespaces: readonly string[] | null): Promise<string> =>
    eventually(() =>
      asAdmin('', async (http) => {
        const objects = accountManifest(name, namespaces);
        await applyManifest(http, objects);
        // Applied again, it is as it was.
        await applyManifest(http, objects);
        const [home = 'berth'] = namespaces ?? [];
        return requestToken(http, { namespace: home, name }, LIFETIME_S);
      }).catch((error: Error) => {
        if (!/being terminated|namespaces "berth" not found/.test(error.message)) throw error;
        return undefined;
      }),
    );
  const remove = (namespaces: readonly string[] | null) =>
    asAdmin('', (http) => removeManifest(http, accountManifest(name, namespaces)));

  beforeAll(async () => {
    if (!process.env['BERTH_TEST_KUBECONFIG']) return;
    await api('POST', box.path('Deployment'), sleeper('web', 2));
  });

  afterAll(async () => {
    if (process.env['BERTH_TEST_KUBECONFIG']) await remove(null);
  });

  /** What stays after the account is removed: the namespace, if accounts of other users are in it. */
  const keptForOthers = async (): Promise<string[]> => {
    const { body } = await api('GET', '/api/v1/namespaces/berth/serviceaccounts');
    const others = body.items.filter(({ metadata }: Json) => ![name, 'default'].includes(metadata.name));
    return others.length > 0 ? ['Namespace berth'] : [];
  };

  it('may do what Berth needs everywhere, and nothing else, and renews its token', async () => {
    const token = await made(null);
    const tokens = new Set<string>();
    const clock = virtualClock(Date.now());
    const here = await cloud({
      clock,
      open: (access) => {
        if (access.credential.kind === 'token') tokens.add(access.credential.token);
        return openKubeCluster(access, ANY, realTime);
      },
    });
    const input = clusterInput({ kubeconfig: kubeconfigFor(token), renewToken: true });
    const { id } = await here.clusters.ask('register', { input });
    await here.clusters.ask('sync', { id });
    const rights = await here.clusters.ask('rights', { id });
    expect(rights.filter(({ isAllowed }) => !isAllowed)).toEqual([]);
    const web = here.find(`${box.namespace}/web`);
    expect(await here.workloads.ask('sleep', { id: web.id, by: 'request', holdMs: null })).toMatchObject({
      replicas: 0,
    });
    expect(await here.workloads.ask('wake', { id: web.id, by: 'request', waitMs: null })).toEqual({
      replicas: 2,
    });
    const secrets = (http: Parameters<Parameters<typeof withUserCluster>[1]>[0]) =>
      http.call({ action: 'list secrets', path: '/api/v1/secrets' });
    await expect(withUserCluster(kubeconfigFor(token), secrets)).rejects.toThrow('may not list secrets');
    // Its times are in whole seconds, so two tokens of one second are equal.
    const issuedAt = tokenRenewal(token)?.issuedAt ?? 0;
    await eventually(() => Date.now() >= issuedAt + 1_000);
    await clock.advance((LIFETIME_S / 3) * 1_000);
    await eventually(() => tokens.size === 2 || undefined);
    expect(await here.clusters.ask('sync', { id })).toMatchObject({ synced: expect.any(Number) });
    const detail: Json = JSON.parse(here.views.cluster(id) ?? '');
    expect(detail).toMatchObject({ authenticated: true, token_renewal: { last_error: null } });
    await here.stop();
    const kept = await keptForOthers();
    expect(await remove(null)).toEqual(kept);
    expect(await asAdmin('', (http) => findAccount(http, { namespace: 'berth', name }))).toBeNull();
    expect(await remove(null)).toEqual(kept);
  });

  it('in one namespace needs nothing outside of it', async () => {
    const only = [box.namespace];
    const token = await made(only);
    const here = await cloud();
    const input = clusterInput({ kubeconfig: kubeconfigFor(token), namespaces: only });
    const { id } = await here.clusters.ask('register', { input });
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 1 });
    const denied = (await here.clusters.ask('rights', { id })).filter(({ isAllowed }) => !isAllowed);
    expect(denied).toMatchObject([{ resource: 'namespaces', isOptional: true }]);
    await here.stop();
    const account = { namespace: box.namespace, name };
    await made([...only, 'default']);
    // What it was given before is known, also after it is made again with less.
    await made(only);
    const found = await asAdmin('', (http) => findAccount(http, account));
    expect(found?.grants).toEqual([box.namespace, 'default']);
    const objects = accountObjects(account, found?.grants ?? []);
    expect(await asAdmin('', (http) => removeManifest(http, objects))).toEqual([]);
    for (const kind of ['roles', 'rolebindings']) {
      const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/default/${kind}/${name}.${box.namespace}`;
      expect(await api('GET', path)).toMatchObject({ status: 404 });
    }
    const { status } = await api('GET', `/api/v1/namespaces/${box.namespace}`);
    expect(status).toBe(200);
  });

  it('says which Berths use it, also after each has made it again', async () => {
    const account = { namespace: box.namespace, name };
    const users = [accountUser('one', 'vm/1'), accountUser('two', 'vm/1')];
    const [one, two] = users as [(typeof users)[0], (typeof users)[0]];
    const note = (user: typeof one, isUsed: boolean) =>
      asAdmin('', (http) => noteAccountUser(http, account, user, isUsed));
    const noted = async () => (await asAdmin('', (http) => findAccount(http, account)))?.users;
    await made([box.namespace]);
    expect(await noted()).toEqual([]);
    // At the same time, as two people may.
    await Promise.all(users.map((user) => note(user, true)));
    const token = await made([box.namespace]);
    expect(await noted()).toEqual(expect.arrayContaining(users));
    const asAccount = (work: Parameters<typeof withUserCluster>[1]) =>
      withUserCluster(kubeconfigFor(token), work);
    expect(await asAccount((http) => noteAccountUser(http, account, one, false))).toEqual([]);
    expect(await note(one, false)).toEqual([two]);
    expect(await noted()).toEqual([two]);
    await remove([box.namespace]);
  });

  it('is found and removed wherever it has rights, whatever it says about them', async () => {
    const account = { namespace: box.namespace, name };
    await made([box.namespace, 'default']);
    const narrower = accountManifest(name, [box.namespace]);
    kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], {
      apiVersion: 'v1',
      kind: 'List',
      items: narrower,
    });
    const state = (of: ServiceAccountName) =>
      asAdmin('', async (http) => [await findAccount(http, of), await listedGrants(http, of)]);
    expect(await state(account)).toMatchObject([{ grants: [box.namespace] }, ['default']]);
    const token = await asAdmin('', (http) => requestToken(http, account, LIFETIME_S));
    expect(await withUserCluster(kubeconfigFor(token), (http) => listedGrants(http, account))).toBeNull();
    // What people are told to run.
    const remove = (of: ServiceAccountName) => {
      for (const line of removalCommands(of)) kubectl(line.split(' ').slice(1));
    };
    remove(account);
    expect(await state(account)).toEqual([null, []]);

    const wide = { namespace: 'berth', name };
    await made(null);
    expect(await state(wide)).toMatchObject([{ grants: [ALL_NAMESPACES] }, [ALL_NAMESPACES]]);
    remove(wide);
    expect(await state(wide)).toEqual([null, []]);
    remove(wide);
    const tokens = `/apis/rbac.authorization.k8s.io/v1/namespaces/berth/roles/${name}-token`;
    expect(await api('GET', tokens)).toMatchObject({ status: 404 });
  });
});
