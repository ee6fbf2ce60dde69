// What the journal of cloud events promises, in a state directory and in a shared database.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newChangePermit } from '../../../src/adapters/change_permit.ts';
import { DatabaseConnection } from '../../../src/adapters/postgres/connection.ts';
import { Lease } from '../../../src/adapters/postgres/lease.ts';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import { openPostgresHistory } from '../../../src/adapters/postgres/postgres_history.ts';
import type { HeldLease } from '../../../src/adapters/postgres/statements.ts';
import type { CloudHistory } from '../../../src/adapters/storage/cloud_history.ts';
import { EventHistory } from '../../../src/adapters/storage/event_history.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD_EVENTS } from '../../../src/settings/cloud_limits.ts';
import { readDatabaseUrl } from '../../../src/settings/database_url.ts';
import { afterThisTest, realTime, tempDir } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../../kit/postgres.ts';

let server: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
}, 60_000);
afterAll(() => server?.remove());

/** Opens the same journal each time. */
type Reopen = () => Promise<CloudHistory>;

function inFolder(): Reopen {
  const folder = join(tempDir(), 'events');
  return async () => new EventHistory(folder, CLOUD_EVENTS.history);
}

/** A database, and the lease of it that the journal is opened with. */
async function leased(): Promise<{ url: string; open: Reopen; lease: HeldLease }> {
  const url = await must(server).createDatabase();
  const address = readDatabaseUrl(url);
  const connect = (): DatabaseConnection => {
    const connection = new DatabaseConnection(address, { purpose: 'test', deadlineMs: 30_000 });
    afterThisTest(() => connection.close());
    return connection;
  };
  await migrate(connect(), true);
  const held = deferred<HeldLease>();
  const lease = new Lease({
    ...{ address, clock: realTime, host: 'test', ownAddress: null, changePermit: newChangePermit(false) },
    ...{ onLost: held.reject, onTrouble: held.reject, onStandby: () => undefined },
    onHeld: (fence) =>
      held.resolve({ fence, isValid: () => lease.isValid(), onFenced: () => lease.onFenced() }),
  });
  afterThisTest(() => lease.release());
  lease.start();
  const found = await held.promise;
  return { url, lease: found, open: () => openPostgresHistory(connect(), found) };
}

const lineOf = (id: number): string => JSON.stringify({ id, text: `"\u0000 ${id}` });
const linesOf = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => lineOf(from + index));
async function all(parts: AsyncIterable<readonly string[]>): Promise<string[]> {
  const found: string[] = [];
  for await (const lines of parts) found.push(...lines);
  return found;
}

const JOURNALS: readonly [name: string, open: () => Promise<Reopen>, isThere: boolean][] = [
  ['a state directory', async () => inFolder(), true],
  [`a shared database${NO_POSTGRES}`, async () => (await leased()).open, hasPostgres],
];

describe.each(JOURNALS)('the journal of %s', (_name, make, isThere) => {
  const it = test.skipIf(!isThere);

  it('numbers and stores lines, and reads them from either end', async () => {
    const open = await make();
    const first = await open();
    expect([first.firstId, first.lastId]).toEqual([0, 0]);
    await first.write(linesOf(1, 3), realTime.now());
    await first.write(linesOf(4, 4), realTime.now());
    expect([first.firstId, first.lastId]).toEqual([1, 4]);
    first.close();
    const second = await open();
    expect([second.firstId, second.lastId]).toEqual([1, 4]);
    await second.write(linesOf(5, 5), realTime.now());
    expect(await all(second.oldestFirst(0))).toEqual(linesOf(1, 5));
    expect(await all(second.oldestFirst(3))).toEqual(linesOf(4, 5));
    expect(await all(second.newestFirst(3))).toEqual(linesOf(1, 2).reverse());
    expect(await all(second.newestFirst(Number.MAX_SAFE_INTEGER))).toEqual(linesOf(1, 5).reverse());
    second.close();
  });

  it('reads lines from several parts', async () => {
    const open = await make();
    const journal = await open();
    await journal.write(linesOf(1, 2_500), realTime.now());
    expect(await all(journal.oldestFirst(0))).toEqual(linesOf(1, 2_500));
    expect(await all(journal.newestFirst(2_501))).toEqual(linesOf(1, 2_500).reverse());
    journal.close();
  });
});

describe(`the journal of a shared database${NO_POSTGRES}`, () => {
  const it = test.skipIf(!hasPostgres);

  it('has each line once if the response to a write was lost', async () => {
    const { open } = await leased();
    const [lost, next] = [await open(), await open()];
    await lost.write(linesOf(1, 3), realTime.now());
    // `next` does not know of these, as one that got no answer.
    await next.write(linesOf(1, 4), realTime.now());
    expect(await all(next.oldestFirst(0))).toEqual(linesOf(1, 4));
  });

  it('refuses lines of a Berth that has lost the lease', async () => {
    const { url, lease, open } = await leased();
    const journal = await open();
    await must(server).run(url, "UPDATE berth.lease SET token = token + 1, member = 'another'");
    await expect(journal.write(linesOf(1, 1), realTime.now())).rejects.toThrow(/lease/);
    expect(lease.isValid()).toBe(false);
    expect(await must(server).run(url, 'SELECT id FROM berth.events')).toEqual([]);
  });

  it('drops old lines, but never its newest line', async () => {
    const { url, open } = await leased();
    const journal = await open();
    await journal.write(linesOf(1, 3), realTime.now());
    await must(server).run(url, "UPDATE berth.events SET at = at - interval '91 days'");
    journal.prune(realTime.now());
    // The statements of a journal run in turn.
    expect(await all(journal.oldestFirst(0))).toEqual(linesOf(3, 3));
    await journal.write(linesOf(4, 4), realTime.now());
    expect([journal.firstId, journal.lastId]).toEqual([3, 4]);
  });
});
