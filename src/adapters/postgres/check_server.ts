// Checks whether a server can be the database of several Berths.
import { randomBytes } from 'node:crypto';
import { deferred, withTimeout } from '../../runtime/deferred.ts';
import { DATABASE } from '../../settings/cloud_limits.ts';
import type { DatabaseAddress } from '../../settings/database_url.ts';
import { DatabaseConnection, DatabaseError } from './connection.ts';

interface ServerFacts {
  version: number;
  encoding: string;
  readonly: boolean;
}

/**
 * Throws a DatabaseError for a server that is too old or read-only, and for a pool that gives each
 * transaction another connection: it loses notifications and session locks.
 */
export async function checkServer(address: DatabaseAddress, connection: DatabaseConnection): Promise<void> {
  const [facts] = await connection.query<ServerFacts>(
    "SELECT current_setting('server_version_num')::int AS version, " +
      "current_setting('server_encoding') AS encoding, " +
      "(pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on') AS readonly",
  );
  if (!facts || facts.version < DATABASE.minVersion * 10_000) {
    const major = Math.floor((facts?.version ?? 0) / 10_000);
    throw new DatabaseError('never', `it is Postgres ${major}; ${DATABASE.minVersion} or newer is needed`);
  }
  // Names and reasons have any characters.
  if (facts.encoding !== 'UTF8')
    throw new DatabaseError('never', `its encoding is ${facts.encoding}; UTF8 is needed`);
  if (facts.readonly) {
    // What is set for the database applies to new sessions only.
    connection.reconnect();
    throw new DatabaseError('again', 'it is read-only: a standby, or set so');
  }
  await checkNotices(address, connection);
}

async function checkNotices(address: DatabaseAddress, connection: DatabaseConnection): Promise<void> {
  const channel = `berth_check_${randomBytes(8).toString('hex')}`;
  const heard = deferred<true>();
  const listener = new DatabaseConnection(address, {
    purpose: 'check',
    deadlineMs: DATABASE.connectTimeoutMs,
    onNotice: (name) => name === channel && heard.resolve(true),
  });
  try {
    await listener.query(`LISTEN ${channel}`);
    await connection.query('SELECT pg_notify($1, $2)', [channel, '']);
    if ((await withTimeout(DATABASE.notifyTimeoutMs, heard.promise)) === null)
      throw new DatabaseError(
        'never',
        'notifications do not arrive: it is behind a pool in transaction mode; connect to Postgres itself',
      );
  } finally {
    listener.close();
  }
}
