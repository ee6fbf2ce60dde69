// docs/reference.md "Cluster token renewal", "Rights in a cluster": a cluster whose token is renewed by itself, in
// virtual time against the double.
import { expect, it } from 'vitest';
import { renewalTime } from '../../../src/protocol/cluster_account.ts';
import { realTime, type TestClock, virtualClock } from '../../kit/actors.ts';
import { type Cloud, cloud, clusterInput, doubleWith, eventually } from '../../kit/cloud.ts';
import type { Double, Json } from '../../kit/kube_double.ts';

const DAY = 86_400;
const detail = (here: Cloud, id: string): Json => JSON.parse(here.views.cluster(id) ?? '{}');
const requests = ({ requests: all }: Double): Json[] => all.filter(({ path }) => path.endsWith('/token'));

/** The double's kubeconfig with another token. */
function withToken(double: Double, token: string): string {
  const config = JSON.parse(double.kubeconfig);
  config.users[0].user = { token };
  return JSON.stringify(config);
}

interface Renewing {
  double: Double;
  clock: TestClock;
  here: Cloud;
  id: string;
}

/** A cloud with a cluster whose token lives for `lifetimeS`, and whose clock is `behindS` behind. */
async function renewing(
  lifetimeS: number,
  behindS = 0,
  clock: TestClock = virtualClock(),
): Promise<Renewing> {
  const double = await doubleWith('hello');
  double.now = () => clock.now() - behindS * 1_000;
  const here = await cloud({ clock });
  const kubeconfig = withToken(double, double.accountToken(double.now(), lifetimeS));
  const { id } = await here.clusters.ask('register', {
    input: clusterInput({ kubeconfig, renewToken: true }),
  });
  return { double, clock, here, id };
}

it('a token is renewed after a third of its life, and used from then on', async () => {
  const { double, clock, here, id } = await renewing(600);
  const due = new Date(clock.now() + 200_000).toISOString();
  expect(detail(here, id).token_renewal).toEqual({
    ...{ namespace: 'berth', service_account: 'berth-ada', uid: 'the-uid' },
    ...{ due_at: due, last_error: null },
  });
  await clock.advance(199_000);
  expect(requests(double)).toEqual([]);
  await clock.advance(1_000);
  const end = new Date(clock.now() + 600_000).toISOString();
  await eventually(() => detail(here, id).credentials_expire_at === end || undefined);
  expect(requests(double)).toMatchObject([{ method: 'POST', body: { spec: { expirationSeconds: 600 } } }]);
  // The first token no longer counts, so what is called now has the new one.
  expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 1 });
  await clock.advance(200_000);
  await eventually(() => requests(double).length === 2 || undefined);
});

it('a long-lived token is renewed every day, and a renewal is no event', async () => {
  const { double, clock, here, id } = await renewing(7 * DAY);
  for (let day = 1; day <= 3; day += 1) {
    await clock.advance(DAY * 1_000);
    await eventually(() => requests(double).length === day || undefined);
    const due = new Date(clock.now() + DAY * 1_000).toISOString();
    await eventually(() => detail(here, id).token_renewal.due_at === due || undefined);
  }
  expect(here.events.of('append')).toEqual([]);
});

it('a failed renewal is shown, and retried until it succeeds', async () => {
  const { double, clock, here, id } = await renewing(9_000);
  double.denied.add('create serviceaccounts/token');
  await clock.advance(3_000_000);
  const error = await eventually(() => detail(here, id).token_renewal.last_error ?? undefined);
  expect(error).toContain('may not create a token of the ServiceAccount berth/berth-ada');
  double.denied.clear();
  // An answer needs real time, and the pause begins when the attempt has failed.
  await eventually(async () => {
    await clock.advance(20_000);
    await realTime.advance(50);
    return detail(here, id).token_renewal.last_error === null || undefined;
  });
  expect(requests(double)).toHaveLength(2);
});

it('a cluster whose clock is behind is not asked for one token after the other', async () => {
  const { double, clock, here, id } = await renewing(600, 250);
  await clock.advance(1_000);
  for (let renewals = 1; renewals <= 3; renewals += 1) {
    const due = new Date(clock.now() + 200_000).toISOString();
    await eventually(() => detail(here, id).token_renewal.due_at === due || undefined);
    await clock.advance(199_999);
    expect(requests(double)).toHaveLength(renewals);
    await clock.advance(1);
  }
});

it('a cluster whose clock is ahead is asked before its token ends', async () => {
  const { double, clock } = await renewing(600, -500);
  await clock.advance(199_000);
  expect(requests(double)).toEqual([]);
  await clock.advance(1_000);
  await eventually(() => requests(double).length === 1);
});

it('a token is renewed in time although the own clock is set back', async () => {
  const virtual = virtualClock();
  let aheadMs = 5 * DAY * 1_000;
  const clock = { ...virtual, now: () => virtual.now() + aheadMs };
  const { double, here, id } = await renewing(600, aheadMs / 1_000, clock);
  // At once, as it seems to be old. The next one is due by the wrong time.
  await clock.advance(1_000);
  await eventually(() => requests(double).length === 1);
  const due = new Date(clock.now() + 200_000).toISOString();
  await eventually(() => detail(here, id).token_renewal.due_at === due);
  aheadMs = 0;
  await clock.advance(200_000);
  await eventually(() => requests(double).length === 2);
});

it('a token is renewed a minute after the last renewal at the earliest', () => {
  const renewal = { namespace: 'berth', name: 'ada', uid: '1', issuedAt: 0, renewedAt: 5_000 };
  expect(renewalTime({ renewal, credentialEndsAt: 1_000 })).toBe(65_000);
});

it.each([2 ** 63, 9e12, 1e300, -1])('a token that ends at %s is one without a known end', async (exp) => {
  const double = await doubleWith('hello');
  const token = `e30.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.x`;
  const here = await cloud();
  const input = clusterInput({ kubeconfig: withToken(double, token) });
  const { id } = await here.clusters.ask('register', { input });
  expect(detail(here, id)).toMatchObject({ name: 'one', credentials_expire_at: null });
  await here.stop();
  const again = await cloud({ folder: here.folder, vault: here.vault });
  await eventually(() => again.views.cluster(id) !== undefined);
  expect(detail(again, id)).toMatchObject({ name: 'one', credentials_expire_at: null });
});

it('users are warned of an unrenewed token after two thirds of its lifetime', async () => {
  const { double, clock, here } = await renewing(9_000);
  double.denied.add('create serviceaccounts/token');
  await clock.advance(5_900_000);
  expect(here.events.of('append')).toEqual([]);
  await clock.advance(3_600_000);
  const events = here.events.of('append').flatMap((message) => message.events);
  expect(events).toMatchObject([{ type: 'cluster.expiring', name: 'one' }]);
});

it('renewals continue after a restart, and one that is due happens at once', async () => {
  const { double, clock, here, id } = await renewing(7 * DAY);
  await here.stop();
  await clock.advance(2 * DAY * 1_000);
  expect(requests(double)).toEqual([]);
  const again = await cloud({ clock, folder: here.folder, vault: here.vault });
  await clock.advance(1);
  await eventually(() => requests(double).length === 1 || undefined);
  await eventually(
    () => detail(again, id).token_renewal?.due_at > new Date(clock.now()).toISOString() || undefined,
  );
});

it('a new kubeconfig ends or changes the renewal, and a removal ends it', async () => {
  const { double, clock, here, id } = await renewing(600);
  const nothing = { name: null, provider: null, namespaces: null };
  const change = { ...nothing, kubeconfig: double.kubeconfig, renewToken: false };
  await here.clusters.ask('change', { id, change });
  expect(detail(here, id)).toMatchObject({ token_renewal: null, credentials_expire_at: null });
  await clock.advance(600_000);
  expect(requests(double)).toEqual([]);
  const kubeconfig = withToken(double, double.accountToken(clock.now(), 600));
  await here.clusters.ask('change', { id, change: { ...nothing, kubeconfig, renewToken: true } });
  await here.clusters.ask('remove', { id });
  await clock.advance(600_000);
  expect(requests(double)).toEqual([]);
});

it('only a ServiceAccount token with an expiry can be renewed', async () => {
  const double = await doubleWith();
  const here = await cloud();
  const claims = (value: object): string =>
    `e30.${Buffer.from(JSON.stringify(value)).toString('base64url')}.x`;
  const sub = 'system:serviceaccount:berth:b';
  const tokens = [
    'opaque',
    claims({}),
    claims({ sub, iat: 1 }),
    claims({ sub, iat: 2, exp: 1 }),
    claims({ sub: 'system:node:a', iat: 1, exp: 9e9 }),
    claims({ sub: 'system:serviceaccount:a:b:c', iat: 1, exp: 9e9 }),
    claims({ sub: [sub], iat: '1', exp: {} }),
    claims({ sub, iat: 1, exp: 2 ** 63 }),
  ];
  for (const token of tokens) {
    const input = clusterInput({ kubeconfig: withToken(double, token), renewToken: true });
    await expect(here.clusters.ask('register', { input })).rejects.toMatchObject({ code: 'invalid_spec' });
  }
  const { id } = await here.clusters.ask('register', {
    input: clusterInput({ kubeconfig: double.kubeconfig }),
  });
  const change = { name: null, provider: null, namespaces: null, kubeconfig: null, renewToken: true };
  await expect(here.clusters.ask('change', { id, change })).rejects.toMatchObject({ code: 'invalid_spec' });
});

it('rights before the first sync are reviewed in the namespace of the context, if it has one', async () => {
  const double = await doubleWith('hello');
  const here = await cloud();
  const config = JSON.parse(double.kubeconfig);
  config.contexts[0].context.namespace = 'web';
  const input = clusterInput({ kubeconfig: JSON.stringify(config) });
  const { id } = await here.clusters.ask('register', { input });
  const rights = await here.clusters.ask('rights', { id });
  expect(new Set(rights.map(({ namespace }) => namespace))).toEqual(new Set(['web', null]));
});

it('rights are reviewed in every listed namespace', async () => {
  const double = await doubleWith('hello');
  double.denied.add('patch statefulsets').add('list events');
  const here = await cloud();
  const id = await here.add(double.kubeconfig);
  const denied = async () =>
    (await here.clusters.ask('rights', { id }))
      .filter(({ isAllowed }) => !isAllowed)
      .map(({ namespace, verb, resource, isOptional }) => [namespace, `${verb} ${resource}`, isOptional]);
  expect(await denied()).toEqual([
    [null, 'patch statefulsets.apps', false],
    [null, 'list events', true],
  ]);
  double.denied.add('list deployments').add('list statefulsets');
  double.namespaces.push('web', 'data');
  double.allowedIn.add('web');
  await here.clusters.ask('sync', { id });
  const inWeb = await here.clusters.ask('rights', { id });
  expect(new Set(inWeb.map(({ namespace }) => namespace))).toEqual(new Set(['web', null]));
  await expect(here.clusters.ask('rights', { id: 'no' })).rejects.toMatchObject({ code: 'unknown_cluster' });
});
