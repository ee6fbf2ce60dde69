// docs/reference.md "Shared database": one connection, and transactions on it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DatabaseConnection } from '../../../src/adapters/postgres/connection.ts';
import { readDatabaseUrl } from '../../../src/settings/database_url.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../../kit/postgres.ts';

let server: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
}, 60_000);
afterAll(() => server?.remove());

const it = test.skipIf(!hasPostgres);

async function connect() {
  const url = await must(server).createDatabase();
  const connection = new DatabaseConnection(readDatabaseUrl(url), { purpose: 'test', deadlineMs: 20_000 });
  afterThisTest(async () => connection.close());
  const rows = async (): Promise<number[]> =>
    (await must(server).run(url, 'SELECT n FROM kept ORDER BY n')).map(({ n }) => n);
  await connection.query('CREATE TABLE kept (n int)');
  return { url, connection, rows };
}

describe(`a connection to a database${NO_POSTGRES}`, () => {
  it('stores a whole transaction, or nothing', async () => {
    const { connection, rows } = await connect();
    await connection.transaction(() => connection.query('INSERT INTO kept VALUES (1)'));
    const fails = connection.transaction(async () => {
      await connection.query('INSERT INTO kept VALUES (2)');
      throw new Error('no');
    });
    await expect(fails).rejects.toThrow('no');
    await connection.query('INSERT INTO kept VALUES (3)');
    expect(await rows()).toEqual([1, 3]);
  });

  it('that is lost within a transaction does not continue it on a new connection', async () => {
    const { url, connection, rows } = await connect();
    const lost = connection.transaction(async () => {
      await connection.query('INSERT INTO kept VALUES (1)');
      const [own] = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await must(server).run(url, `SELECT pg_terminate_backend(${must(own).pid}, 10000)`);
      await connection.query('INSERT INTO kept VALUES (2)').catch(() => undefined);
      await connection.query('INSERT INTO kept VALUES (3)');
    });
    await expect(lost).rejects.toMatchObject({ kind: 'again' });
    expect(await rows()).toEqual([]);
    await connection.query('INSERT INTO kept VALUES (4)');
    expect(await rows()).toEqual([4]);
  });

  it('converts the rows of a result as they arrive', async () => {
    const { connection } = await connect();
    const text = 'SELECT n FROM generate_series(1, $1::int) AS n';
    const tens = await connection.read(text, [5_000], ({ n }: { n: number }) => 10 * n);
    expect([tens.length, tens[0], tens.at(-1)]).toEqual([5_000, 10, 50_000]);
    await expect(connection.read('SELECT 1 / $1::int AS n', [0], (row) => row)).rejects.toMatchObject({
      kind: 'never',
      state: '22012',
    });
  });

  it('reports a row that cannot be converted, and serves the next statement', async () => {
    const { connection } = await connect();
    const rows = `SELECT record FROM (VALUES ('1'), ('{'), ('3')) AS rows (record) WHERE $1`;
    const parsed = ({ record }: { record: string }): unknown => JSON.parse(record);
    await expect(connection.read(rows, [true], parsed)).rejects.toMatchObject({
      kind: 'never',
      message: expect.stringMatching(/^a row cannot be read: /),
    });
    expect(await connection.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it('that is lost while rows arrive fails, and the next statement has a new one', async () => {
    const { url, connection } = await connect();
    const [own] = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    let read = 0;
    const text = `SELECT repeat('x', 10000), pg_sleep(0.01) FROM generate_series(1, $1::int)`;
    const lost = connection.read(text, [100_000], () => {
      read += 1;
      if (read === 1) void must(server).run(url, `SELECT pg_terminate_backend(${must(own).pid}, 10000)`);
    });
    await expect(lost).rejects.toMatchObject({ kind: 'again' });
    expect(await connection.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it('has its own time limit, not a shorter one of the role', async () => {
    const { url, connection } = await connect();
    const name = new URL(url).pathname.slice(1);
    await must(server).run(url, `ALTER DATABASE "${name}" SET statement_timeout = 50`);
    connection.close();
    const again = new DatabaseConnection(readDatabaseUrl(url), { purpose: 'test', deadlineMs: 20_000 });
    afterThisTest(async () => again.close());
    expect(await again.query('SELECT pg_sleep(0.2)')).toHaveLength(1);
  });
});
