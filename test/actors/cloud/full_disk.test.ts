// The changes of a cloud whose disk is full: docs/reference.md "Full disk".
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openLeased } from '../../../src/adapters/postgres/open_leased.ts';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import { NO_SUBJECT } from '../../../src/protocol/cloud_events.ts';
import type { OperationResult } from '../../../src/protocol/cloud_operations.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { CLOUD, CLOUD_EVENTS } from '../../../src/settings/cloud_limits.ts';
import { readDatabaseUrl } from '../../../src/settings/database_url.ts';
import { afterThisTest, tempDir, virtualClock } from '../../kit/actors.ts';
import { auditOf, type Cloud, cloud, doubleWith, eventually, openCloudStore } from '../../kit/cloud.ts';
import { type Double, type Json, statusOf } from '../../kit/kube_double.ts';
import { must } from '../../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../../kit/postgres.ts';

let server: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
}, 60_000);
afterAll(() => server?.remove());

/** A store that refuses rows of some tables while it is full. */
interface TestedStore {
  store: CloudStore;
  fill(table: 'workloads' | 'operations'): Promise<void>;
  free(): Promise<void>;
}

function embedded(): TestedStore {
  const { cloudStore } = openCloudStore(tempDir());
  let full = '';
  const refuse = (table: string): void => {
    if (full === table) throw fail('storage_full', 'no room');
  };
  const store: CloudStore = {
    ...cloudStore,
    async save(batch) {
      if (batch.records.length > 0) refuse('workloads');
      await cloudStore.save(batch);
    },
    async saveOperation(row, removed) {
      refuse('operations');
      await cloudStore.saveOperation(row, removed);
    },
  };
  const fillWith = async (table: string): Promise<void> => {
    full = table;
  };
  return { store, fill: fillWith, free: () => fillWith('') };
}

/** Postgres says what it says on a full disk. */
async function inPostgres(): Promise<TestedStore> {
  const url = await must(server).createDatabase();
  const { store, close } = await openLeased(readDatabaseUrl(url), 'test');
  afterThisTest(close);
  const run = (text: string) => must(server).run(url, text);
  const error = `RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'`;
  await run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${error}; END $$`);
  return {
    store,
    async fill(table) {
      const when = `BEFORE INSERT OR UPDATE ON berth.${table} FOR EACH ROW`;
      await run(`CREATE TRIGGER is_full ${when} EXECUTE FUNCTION refuse()`);
    },
    async free() {
      for (const table of ['workloads', 'operations'])
        await run(`DROP TRIGGER IF EXISTS is_full ON berth.${table}`);
    },
  };
}

const DONE: OperationResult = { answer: '{"replicas":0}', failure: null, reason: null };
const begin = ({ operations }: Cloud, action: string, workloadId: string) => {
  const subject = { ...NO_SUBJECT, workloadId };
  const request = { key: 'k', fingerprint: action, action, who: 'token', from: null, subject };
  return operations.ask('begin', { request });
};
const settle = ({ operations }: Cloud, id: string) =>
  operations.ask('settle', { id, subject: NO_SUBJECT, result: DONE });
const typesOf = async (here: Cloud): Promise<string[]> => (await auditOf(here)).map(({ type }) => type);
const replicasIn = (double: Double): number => double.get('Deployment', 'web', 'hello')?.spec?.replicas;

describe.each([
  ['embedded', embedded, test],
  [`in Postgres${NO_POSTGRES}`, inPostgres, test.skipIf(!hasPostgres)],
] as const)('a full store, %s', (_, create, ifThere) => {
  /** A cloud with one workload, whose disk is not full yet. */
  async function open() {
    const double = await doubleWith('hello');
    const tested = await create();
    const clock = virtualClock();
    const shared = { shared: tested.store, folder: tempDir() };
    const here = await cloud({ ...shared, clock });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    return { double, here, id, clock, shared, ...tested };
  }

  ifThere(
    'lets a sleep and a wake that the cluster has carried out succeed, and shows them later',
    async () => {
      const { double, here, id, clock, fill, free } = await open();
      const { id: operation } = await begin(here, 'sleepWorkload', id);
      await fill('workloads');
      const sleep = { id, by: 'request', holdMs: null, operation } as const;
      expect(await here.workloads.ask('sleep', sleep)).toEqual({ replicas: 0, slept: true });
      expect(replicasIn(double)).toBe(0);
      expect(here.find('web/hello')).toMatchObject({ state: 'awake', replicas: 3 });
      await settle(here, operation);
      expect(await typesOf(here)).toContain('operation.done');
      await free();
      await clock.advance(CLOUD.commitRetryMs);
      await here.until('web/hello', (row: Json) => row.replicas === 0);
      await fill('workloads');
      double.onPatched = () =>
        double.change('Deployment', 'web', 'hello', (row) => {
          row.status = { ...statusOf(3), observedGeneration: row.metadata.generation };
        });
      const wake = { id, by: 'request', waitMs: 60_000 } as const;
      expect(await here.workloads.ask('wake', wake)).toEqual({ replicas: 3 });
      await free();
      await clock.advance(CLOUD.commitRetryMs);
      await here.until('web/hello', (row: Json) => row.replicas === 3);
    },
  );

  /** As `open`, after a sleep whose end does not fit on disk, also not when it is tried again. */
  async function openRefused() {
    const all = await open();
    const { here, id, clock, fill } = all;
    const { id: operation } = await begin(here, 'sleepWorkload', id);
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null, operation });
    await fill('operations');
    await expect(settle(here, operation)).rejects.toMatchObject({
      code: 'storage_full',
      detail: { hint: expect.stringContaining(`/k8s/operations/${operation}`) },
    });
    await clock.advance(CLOUD_EVENTS.retryMs);
    return { ...all, operation };
  }
  const endsOf = async (here: Cloud): Promise<string[]> =>
    (await typesOf(here)).filter((type) => type.startsWith('operation.'));

  ifThere(
    'has the end of an operation that it refused, once there is room, and in the journal once',
    async () => {
      const { here, id, clock, shared, store, free, operation } = await openRefused();
      expect((await here.operations.ask('read', { id: operation })).operation?.state).toBe('done');
      expect(await begin(here, 'sleepWorkload', id)).toMatchObject({ run: false, result: DONE });
      await free();
      await clock.advance(CLOUD_EVENTS.retryMs);
      await eventually(async () =>
        (await store.operations()).some((row) => row.state === 'done' && row.isTold),
      );
      await here.stop();
      const next = await cloud({ ...shared, vault: here.vault });
      expect(await begin(next, 'sleepWorkload', id)).toMatchObject({ run: false, result: DONE });
      expect(await endsOf(next)).toEqual(['operation.done']);
    },
  );

  ifThere('has the next daemon report the end that it refused as done, once', async () => {
    const { here, id, shared, free } = await openRefused();
    await here.stop();
    await free();
    const next = await cloud({ ...shared, vault: here.vault });
    expect(await begin(next, 'sleepWorkload', id)).toMatchObject({ run: false, result: { failure: null } });
    expect(await endsOf(next)).toEqual(['operation.done']);
  });
});
