// A shared database for a program that writes to it once, while no Berth holds its clusters.
import { systemClock } from '../../runtime/clock.ts';
import { deferred } from '../../runtime/deferred.ts';
import { DATABASE, LEASE } from '../../settings/cloud_limits.ts';
import type { DatabaseAddress } from '../../settings/database_url.ts';
import { newChangePermit } from '../change_permit.ts';
import type { CloudStore } from '../storage/cloud_store.ts';
import { checkServer } from './check_server.ts';
import { DatabaseConnection, DatabaseError } from './connection.ts';
import { type Fence, Lease } from './lease.ts';
import { migrate } from './migrate.ts';
import { postgresCloudStore } from './postgres_cloud.ts';

export interface LeasedStore {
  readonly store: CloudStore;
  /** The name of whoever held the lease before; null: nobody did. */
  readonly earlierHolder: string | null;
  /** Makes `host` the earlier holder for later programs. To be called before any row is written. */
  claim(): Promise<void>;
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
  const held = deferred<{ store: CloudStore; fence: Fence }>();
  let earlierHolder: string | null = null;
  const begun = systemClock.monotonic();
  const lease = new Lease({
    ...{ address, clock: systemClock, host, ownAddress: null, onTrouble: held.reject },
    changePermit: newChangePermit(false),
    onLost: (reason) => held.reject(new DatabaseError('again', reason)),
    onStandby: (holder) => {
      earlierHolder = holder;
      if (systemClock.monotonic() - begun < LEASE.ttlMs + LEASE.beatMs) return;
      held.reject(new DatabaseError('again', `${holder} has the clusters: stop it first`));
    },
    onHeld: (fence) =>
      held.resolve({
        fence,
        store: postgresCloudStore(connection, {
          ...{ fence, isValid: () => lease.isValid(), onFenced: () => lease.onFenced() },
        }),
      }),
  });
  const close = async (): Promise<void> => {
    await lease.release();
    connection.close();
  };
  try {
    await checkServer(address, connection);
    await migrate(connection, true);
    const [before] = await connection.query<{ host: string | null }>('SELECT host FROM berth.lease');
    earlierHolder = before?.host ?? null;
    lease.start();
    const { store, fence } = await held.promise;
    const nameHolder = async (name: string | null): Promise<void> => {
      await connection.query('UPDATE berth.lease SET host = $1 WHERE member = $2', [name, fence.member]);
    };
    await nameHolder(earlierHolder);
    return { store, earlierHolder, claim: () => nameHolder(host), close };
  } catch (error) {
    await close();
    throw error;
  }
}
