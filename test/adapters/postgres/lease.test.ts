// docs/reference.md "Shared database": what cuts a holder off from the database, and a pool before it.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mayChange, newChangePermit } from '../../../src/adapters/change_permit.ts';
import { checkServer } from '../../../src/adapters/postgres/check_server.ts';
import { DatabaseConnection, type DatabaseError } from '../../../src/adapters/postgres/connection.ts';
import { type Fence, Lease } from '../../../src/adapters/postgres/lease.ts';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import { postgresCloudStore } from '../../../src/adapters/postgres/postgres_cloud.ts';
import type { Clock } from '../../../src/runtime/actor.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { readDatabaseUrl } from '../../../src/settings/database_url.ts';
import { afterThisTest, realTime } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../../kit/postgres.ts';
import { tcpWay } from '../../kit/tcp_way.ts';

let server: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
}, 60_000);
afterAll(() => server?.remove());

const it = test.skipIf(!hasPostgres);

/** A way to the server that is closed after the test: see `tcpWay`. */
async function wayTo(filter: (chunk: Buffer) => Buffer | null): Promise<{ port: number }> {
  const way = await tcpWay(() => must(server).port, filter);
  afterThisTest(() => way.close());
  return way;
}

/** One Berth's lease on the database of `url`. */
function member(url: string, clock: Clock = realTime) {
  const address = readDatabaseUrl(url);
  const held = deferred<Fence>();
  const lost = deferred<void>();
  const changePermit = newChangePermit(false);
  const lease = new Lease({
    ...{
      changePermit,
      address,
      clock,
      host: 'test',
      ownAddress: null,
      onStandby: () => undefined,
      onTrouble: () => undefined,
    },
    onHeld: held.resolve,
    onLost: () => lost.resolve(),
  });
  const connection = new DatabaseConnection(address, { purpose: 'test', deadlineMs: 30_000 });
  afterThisTest(async () => {
    await lease.release();
    connection.close();
  });
  return {
    lease,
    mayChange: () => mayChange(changePermit),
    connection,
    held: held.promise,
    lost: lost.promise,
  };
}

describe(`the lease of a shared database${NO_POSTGRES}`, () => {
  it('refuses the late writes of a disconnected holder once another server holds it', async () => {
    const url = await must(server).createDatabase();
    let isCut = false;
    const { port } = await wayTo((chunk) => (isCut ? null : chunk));
    const first = member(url.replace(/:\d+\//, `:${port}/`));
    const second = member(url);
    await migrate(second.connection, true);
    first.lease.start();
    const fence = await first.held;
    expect(first.mayChange()).toBe(true);
    second.lease.start();
    isCut = true;
    expect(await second.held.then(() => first.mayChange())).toBe(false);
    await first.lost;
    expect(first.lease.isValid()).toBe(false);
    expect((await second.held).token).not.toBe(fence.token);
    // As one that has not noticed: by the way that is open again, with the fence of before.
    let isFenced = false;
    const late = postgresCloudStore(second.connection, {
      ...{ fence, isValid: () => !isFenced },
      onFenced: () => {
        isFenced = true;
      },
    });
    await expect(late.removePolicy('nights')).rejects.toMatchObject({ code: 'standing_by' });
    expect(isFenced).toBe(true);
  });

  it('stays with its holder when the connection of the holder is interrupted briefly', async () => {
    const url = await must(server).createDatabase();
    const [first, second] = [member(url), member(url)];
    await migrate(second.connection, true);
    first.lease.start();
    const fence = await first.held;
    second.lease.start();
    for (let times = 0; times < 3; times += 1) {
      const [cut] = await must(server).run(
        url,
        `SELECT clock_timestamp() AS at, count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name LIKE 'berth % lease'`,
      );
      // Both are back, and the holder has renewed the lease since.
      const isBack = `SELECT (SELECT expires_at > '${cut.at.toISOString()}'::timestamptz + interval '5 s'
        FROM berth.lease) AND count(*) = 2 AS back FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'berth % lease'`;
      await eventually(async () => (await must(server).run(url, isBack))[0].back);
    }
    expect(first.lease.isValid()).toBe(true);
    const [row] = await must(server).run(url, 'SELECT member, token::text FROM berth.lease');
    expect(row).toEqual(fence);
  });

  it('is lost at once for whoever finds it over, before a write fails for lack of it', async () => {
    const url = await must(server).createDatabase();
    let laterMs = 0;
    const clock: Clock = {
      ...realTime,
      // Nothing renews it, and nothing looks whether it is over.
      after: () => () => undefined,
      every: () => () => undefined,
      monotonic: () => realTime.monotonic() + laterMs,
    };
    const { lease, connection, held, lost } = member(url, clock);
    await migrate(connection, true);
    lease.start();
    const fence = await held;
    const order: string[] = [];
    const noted = lost.then(() => order.push('lost'));
    const store = postgresCloudStore(connection, {
      ...{ fence, isValid: () => lease.isValid(), onFenced: () => undefined },
    });
    laterMs = 60_000;
    await store.removePolicy('nights').catch(({ code }) => order.push(code));
    await noted;
    expect(order).toEqual(['lost', 'standing_by']);
  });

  it('requires notifications, which a pool in transaction mode drops', async () => {
    const url = await must(server).createDatabase();
    // The message NotificationResponse, which nothing else of these answers begins like.
    const { port } = await wayTo((chunk) => (chunk[0] === 0x41 ? Buffer.alloc(0) : chunk));
    const address = readDatabaseUrl(url.replace(/:\d+\//, `:${port}/`));
    const connection = new DatabaseConnection(address, { purpose: 'test', deadlineMs: 30_000 });
    afterThisTest(() => connection.close());
    const error = await checkServer(address, connection).catch((failure: DatabaseError) => failure);
    expect(error).toMatchObject({
      kind: 'never',
      message: expect.stringContaining('pool in transaction mode'),
    });
  });

  it('that is read-only is asked again in a new session, which has what is set by then', async () => {
    const url = await must(server).createDatabase();
    const address = readDatabaseUrl(url);
    const connection = new DatabaseConnection(address, { purpose: 'test', deadlineMs: 30_000 });
    afterThisTest(() => connection.close());
    const set = (value: string) =>
      must(server).run(
        url.replace(/[^/]+$/, 'postgres'),
        `ALTER DATABASE ${url.split('/').at(-1)} SET default_transaction_read_only = ${value}`,
      );
    await set('on');
    await expect(checkServer(address, connection)).rejects.toMatchObject({ kind: 'again' });
    await set('off');
    await checkServer(address, connection);
  });
});
