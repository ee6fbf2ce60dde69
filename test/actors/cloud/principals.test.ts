// Tokens and grants as their owner keeps them: what ends with them. docs/reference.md "API tokens".
import { expect, it } from 'vitest';
import { principalsActor } from '../../../src/actors/cloud/principals.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { cloudViewsActor } from '../../../src/front/views/cloud_views_actor.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import type { CloudEventsProtocol } from '../../../src/protocol/cloud_events.ts';
import type { RelayProtocol } from '../../../src/protocol/relay.ts';
import type { StoredTether, TethersProtocol } from '../../../src/protocol/tethers.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { PRINCIPALS } from '../../../src/settings/cloud_limits.ts';
import { settle, type TestClock, tempDir, virtualClock, world } from '../../kit/actors.ts';
import { openCloudStore } from '../../kit/cloud.ts';
import { settableClock } from '../../kit/policies.ts';

const BY = { who: 'token', from: '127.0.0.1', operationId: null };
const ALL = { clusterId: null, namespace: null, labels: null };
const DAY = 86_400_000;

async function principals(folder = tempDir(), clock: TestClock = virtualClock()) {
  const { cloudStore, close } = openCloudStore(folder);
  const here = world({ clock });
  const views = new CloudViews();
  await here.start('cloudviews', cloudViewsActor, views);
  const labels = new Map<string, string>();
  await here.stand<WorkloadsProtocol>('workloads', {
    placeOf: ({ id }) =>
      id === 'gone' ? null : { clusterId: 'one', namespace: id, labels: labels.get(id) ?? '' },
  });
  await here.stand<CloudEventsProtocol>('cloudevents', { append: () => ({ isStored: true }) });
  const tethers = await here.stand<TethersProtocol>('tethers', { revoked: () => null });
  const relay = await here.stand<RelayProtocol>('relay', { rightsChanged: () => null });
  const start = () => here.start('principals', principalsActor, { store: cloudStore, hasRelay: true });
  const tether = (id: string, owner: string | null, workloadId: string): Promise<void> => {
    const row: StoredTether = {
      ...{ id, clusterId: 'one', workloadId, containerPort: 80, label: null, wake: true, localPort: 1 },
      ...{ active: true, ...(owner !== null && { owners: [`token:${owner}`] }) },
    };
    return cloudStore.saveTether(row);
  };
  return { here, labels, views, tethers, relay, start, tether, store: cloudStore, close };
}

it('a revoked token loses its tethers and relay connections, and no other does', async () => {
  const { start, tether, tethers, relay } = await principals();
  const owner = await start();
  const { token } = await owner.ask('createToken', { name: 'ci', expiresAt: null, by: BY });
  const { token: other } = await owner.ask('createToken', { name: 'other', expiresAt: null, by: BY });
  for (const name of ['ci', 'other'])
    await owner.ask('createGrant', { input: { to: { kind: 'token', name }, role: 'waker', ...ALL }, by: BY });
  await tether('a', token.id, 'web');
  await tether('b', other.id, 'web');
  await tether('c', null, 'web');
  await owner.ask('revokeToken', { name: 'ci', by: BY });
  expect(tethers.of('revoked')).toEqual([{ ids: ['a'] }]);
  expect(relay.of('rightsChanged')).toEqual([{ subject: `token:${token.id}` }]);
});

it('a removed grant ends the tethers to its workloads, except to a workload that is missing', async () => {
  const { start, tether, tethers } = await principals();
  const owner = await start();
  const { token } = await owner.ask('createToken', { name: 'ci', expiresAt: null, by: BY });
  const grant = (namespace: string) =>
    owner.ask('createGrant', {
      input: { to: { kind: 'token', name: 'ci' }, role: 'waker', ...ALL, namespace },
      by: BY,
    });
  const [, hr] = [await grant('web'), await grant('hr')];
  for (const workload of ['web', 'hr', 'gone']) await tether(workload, token.id, workload);
  const may = (workloadId: string) => owner.ask('mayTether', { subjects: [`token:${token.id}`], workloadId });
  expect([await may('web'), await may('hr'), await may('gone')]).toEqual(
    [true, true, false].map((isAllowed) => ({ isAllowed })),
  );
  await owner.ask('removeGrant', { id: hr.id, by: BY });
  expect(tethers.of('revoked')).toEqual([{ ids: ['hr'] }]);
  expect(await may('hr')).toEqual({ isAllowed: false });
});

it('a grant that is created again by the same operation is the same grant', async () => {
  const { start, store } = await principals();
  const owner = await start();
  const by = { ...BY, operationId: newUlid(Date.now()) };
  const input = { to: { kind: 'user', name: 'ada' }, role: 'waker', ...ALL } as const;
  const grant = await owner.ask('createGrant', { input, by });
  expect(grant.id).toBe(by.operationId);
  expect(await owner.ask('createGrant', { input, by })).toEqual(grant);
  expect(await store.grants()).toEqual([grant]);
});

it('a workload that loses its label loses the tethers of those who had rights by it', async () => {
  const { start, tether, tethers, relay, labels } = await principals();
  const owner = await start();
  const { token } = await owner.ask('createToken', { name: 'ci', expiresAt: null, by: BY });
  const to = { kind: 'token', name: 'ci' } as const;
  const input = { to, role: 'waker', ...ALL, labels: 'team=web' } as const;
  await owner.ask('createGrant', { input, by: BY });
  for (const id of ['web', 'hr']) {
    labels.set(id, '\nteam=web\n');
    await tether(id, token.id, id);
  }
  await owner.ask('relabelled', { ids: ['web', 'hr', 'gone'] });
  expect(tethers.of('revoked')).toEqual([]);
  for (const id of ['web', 'hr']) labels.set(id, '\nteam=hr\n');
  await owner.ask('relabelled', { ids: ['web'] });
  expect(tethers.of('revoked')).toEqual([{ ids: ['web'] }]);
  expect(relay.of('relabelled').at(-1)).toEqual({ ids: ['web'] });
});

it('an expired token loses what it has opened', async () => {
  const { here, start, tether, tethers, relay } = await principals();
  const owner = await start();
  const expiresAt = here.clock.now() + 2 * DAY;
  const { token } = await owner.ask('createToken', { name: 'ci', expiresAt, by: BY });
  await owner.ask('createToken', { name: 'later', expiresAt: expiresAt + DAY, by: BY });
  await owner.ask('createGrant', {
    input: { to: { kind: 'token', name: 'ci' }, role: 'admin', ...ALL },
    by: BY,
  });
  await tether('a', token.id, 'web');
  await here.clock.advance(2 * DAY - 1);
  expect(tethers.of('revoked')).toEqual([]);
  await here.clock.advance(1);
  await owner.ask('mayTether', { subjects: [], workloadId: 'web' });
  expect(tethers.of('revoked')).toEqual([{ ids: ['a'] }]);
  expect(relay.of('rightsChanged')).toEqual([{ subject: `token:${token.id}` }]);
  const asked = owner.ask('mayTether', { subjects: [`token:${token.id}`], workloadId: 'web' });
  expect(await asked).toEqual({ isAllowed: false });
});

it('a token that expired while the machine was suspended loses what it has opened soon after', async () => {
  const clock = settableClock('2030-01-07T12:00Z');
  const { start, tether, tethers, relay } = await principals(tempDir(), clock);
  const owner = await start();
  const expiresAt = clock.now() + DAY;
  const { token } = await owner.ask('createToken', { name: 'ci', expiresAt, by: BY });
  const input = { to: { kind: 'token', name: 'ci' }, role: 'waker', ...ALL } as const;
  await owner.ask('createGrant', { input, by: BY });
  await tether('a', token.id, 'web');
  await clock.advance(DAY / 2);
  clock.set('2030-01-09T00:00Z');
  await clock.advance(PRINCIPALS.lookMs);
  await owner.ask('mayTether', { subjects: [], workloadId: 'web' });
  expect(tethers.of('revoked')).toEqual([{ ids: ['a'] }]);
  expect(relay.of('rightsChanged')).toEqual([{ subject: `token:${token.id}` }]);
});

it('a restart keeps tokens with their last use, and ends what was left of a revoked one', async () => {
  const folder = tempDir();
  const first = await principals(folder);
  const owner = await first.start();
  const { token } = await owner.ask('createToken', { name: 'ci', expiresAt: null, by: BY });
  await owner.ask('used', { id: token.id, at: 77 });
  await first.tether('a', 'of-a-revoked-token', 'web');
  await first.here.node.stop();
  await first.close();
  const second = await principals(folder);
  await second.start();
  await settle();
  expect(second.views.principals.tokens()).toMatchObject([{ name: 'ci', lastUsedAt: 77 }]);
  expect(second.tethers.of('revoked')).toEqual([{ ids: ['a'] }]);
});
