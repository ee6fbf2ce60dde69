// docs/server.md "The way to the database": TLS, and pools of connections, by the built program and the real
// servers.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { certificate } from '../kit/certificates.ts';
import { type Daemon, eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { must } from '../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../kit/postgres.ts';
import { hasPooler, NO_POOLER, type Pooler, startPooler } from '../kit/postgres_pooler.ts';

const ca = certificate({ commonName: 'ca of the database' });
const stranger = certificate({ commonName: 'ca of somebody else' });
/** Valid for the name, not for the address. */
const identity = certificate({ commonName: 'database', issuer: ca, names: ['localhost'] });

let postgres: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) postgres = await startPostgres({ identity });
}, 60_000);
afterAll(() => postgres?.remove());

const it = test.skipIf(!hasPostgres);

function migrate(url: string): { code: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, 'cloud', 'migrate'], {
    encoding: 'utf8',
    env: { ...process.env, BERTH_DATABASE_URL: url, XDG_CONFIG_HOME: newFolder() },
  });
  return { code: status, said: stdout + stderr };
}

function startServer(url: string, key: string): Promise<Daemon> {
  return startDaemon({
    config: `[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = -1\nkey_file = "${key}"\n`,
    env: { BERTH_DATABASE_URL: url },
    command: ['cloud', 'serve'],
  });
}

function newKey(): string {
  const path = join(newFolder(), 'cloud.key');
  writeFileSync(path, randomBytes(32), { mode: 0o600 });
  return path;
}

const clustersOf = (server: Daemon) =>
  server.request('GET', '/k8s/clusters', undefined, {
    Authorization: 'Bearer cloud',
    'Berth-Passed-On': '1',
  });

/** The URL by which the database of `url` is reached at another host or port. */
const by = (url: string, { host = '127.0.0.1', port = must(postgres).port }): string =>
  url.replace(/@[^/]+\//, `@${host}:${port}/`);

const newCaFile = (text: string): string => {
  const path = join(newFolder(), 'ca.pem');
  writeFileSync(path, text);
  return path;
};

describe(`TLS to the database${NO_POSTGRES}`, () => {
  it('verifies the certificate and the name, with the CA of sslrootcert', async () => {
    const url = by(await must(postgres).createDatabase(), { host: 'localhost' });
    const safe = `${url}?sslmode=verify-full&sslrootcert=${newCaFile(ca.cert)}`;
    expect(migrate(safe)).toEqual({ code: 0, said: 'the schema has format 1 now\n' });
    const server = await startServer(safe, newKey());
    await eventually(async () => (await clustersOf(server)).status === 200);
    const isEncrypted = `SELECT bool_and(ssl) AS encrypted FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE datname = current_database() AND application_name LIKE 'berth %'`;
    expect(await must(postgres).run(url, isEncrypted)).toEqual([{ encrypted: true }]);
    expect(server.stderr()).not.toContain('Warning');
  });

  it.each([
    ['another authority', 'localhost', () => newCaFile(stranger.cert), /unable to verify|self.signed/],
    ['another name', '127.0.0.1', () => newCaFile(ca.cert), /does not match|is not in the cert/],
    ['no file of an authority', 'localhost', () => '/nowhere/ca.pem', /sslrootcert: ENOENT/],
  ])('refuses %s, and reports it', async (_what, host, caFile, reason) => {
    const url = by(await must(postgres).createDatabase(), { host });
    const { code, said } = migrate(`${url}?sslmode=verify-full&sslrootcert=${caFile()}`);
    expect([code, said]).toEqual([1, expect.stringMatching(reason)]);
    expect(said).not.toContain('Warning');
  });
});

describe(`a connection pool in front of the database${NO_POSTGRES || NO_POOLER}`, () => {
  const itPooled = test.skipIf(!hasPostgres || !hasPooler);

  async function withPooler<T>(
    mode: 'session' | 'transaction',
    use: (pooler: Pooler) => Promise<T>,
  ): Promise<T> {
    const pooler = await startPooler(must(postgres).port, mode);
    try {
      return await use(pooler);
    } finally {
      await pooler.stop();
    }
  }

  itPooled('in transaction mode is refused with the reason, by the command and the server', () =>
    withPooler('transaction', async ({ port }) => {
      const url = by(await must(postgres).createDatabase(), { port });
      const reason = 'it is behind a pool in transaction mode; connect to Postgres itself';
      expect(migrate(url)).toEqual({ code: 1, said: expect.stringContaining(reason) });
      const server = await startServer(url, newKey());
      expect(await clustersOf(server)).toMatchObject({
        status: 503,
        body: { code: 'database_unusable', message: expect.stringContaining(reason) },
      });
    }),
  );

  itPooled('in session mode serves servers that take over from each other', () =>
    withPooler('session', async ({ port }) => {
      const url = by(await must(postgres).createDatabase(), { port });
      const key = newKey();
      const first = await startServer(url, key);
      await eventually(async () => (await clustersOf(first)).status === 200);
      const second = await startServer(url, key);
      expect((await clustersOf(second)).body.code).toBe('standing_by');
      first.signal('SIGKILL');
      await eventually(async () => (await clustersOf(second)).status === 200);
    }),
  );
});
