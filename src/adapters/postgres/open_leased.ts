// A shared database for a program that writes to it once, while no Berth holds its clusters.
import { systemClock } from '../../runtime/clock.ts';
import { deferred } from '../../runtime/deferred.ts';
import { DATABASE, LEASE } from '../../settings/cloud_limits.ts';
import type { DatabaseAddress } from '../../settings/database_url.ts';
import { newChangePermit } from '../change_permit.ts';
import type { CloudStore } from '../storage/cloud_store.ts';
import { checkServer } from './check_server.ts';
import { DatabaseConnection, DatabaseError } from './connection.ts';
import { Lease } from './lease.ts';
import { migrate } from './migrate.ts';
import { postgresCloudStore } from './postgres_cloud.ts';

export interface LeasedStore {
  readonly store: CloudStore;
  /** The name of whoever held the lease before; null: nobody did. */
  readonly earlierHolder: string | null;
  /** Releases the lease, and ends the connections. */
  close(): Promise<void>;
}

/**
 * Takes the lease, after waiting for that of a Berth that has just died. Throws a DatabaseError when a Berth
 * holds it, or the database is unsuitable.
 */
export async function openLeased(address: DatabaseAddress, host: string): Promise<LeasedStore> {
  const connection = new DatabaseConnection(address, {
    purpose: 'store',
    deadlineMs: DATABASE.statementTimeoutMs,
  });
  const held = deferred<CloudStore>();
  const begun = systemClock.monotonic();
  const lease = new Lease({
    ...{ address, clock: systemClock, host, ownAddress: null, onTrouble: held.reject },
    changePermit: newChangePermit(false),
    onLost: (reason) => held.reject(new DatabaseError('again', reason)),
    onStandby: (holder) => {
      if (systemClock.monotonic() - begun < LEASE.ttlMs + LEASE.beatMs) return;
      held.reject(new DatabaseError('again', `${holder} has the clusters: stop it first`));
    },
    onHeld: (fence) =>
      held.resolve(
        postgresCloudStore(connection, {
          ...{ fence, isValid: () => lease.isValid(), onFenced: () => lease.onFenced() },
        }),
      ),
  });
  const close = async (): Promise<void> => {
    await lease.release();
    connection.close();
  };
  try {
    await checkServer(address, connection);
    await migrate(connection, true);
    const [before] = await connection.query<{ host: string | null }>('SELECT host FROM berth.lease');
    lease.start();
    return { store: await held.promise, earlierHolder: before?.host ?? null, close };
  } catch (error) {
    await close();
    throw error;
  }
}
