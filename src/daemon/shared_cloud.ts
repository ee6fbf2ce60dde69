// The cloud part on a database that several Berths share: one of them runs it, the others stand by.
// docs/reference.md "Shared database".
import { setTimeout as pause } from 'node:timers/promises';
import { checkServer } from '../adapters/postgres/check_server.ts';
import { DatabaseConnection, DatabaseError } from '../adapters/postgres/connection.ts';
import { type Fence, Lease } from '../adapters/postgres/lease.ts';
import { migrate } from '../adapters/postgres/migrate.ts';
import { postgresCloudStore } from '../adapters/postgres/postgres_cloud.ts';
import { openPostgresHistory } from '../adapters/postgres/postgres_history.ts';
import type { HeldLease } from '../adapters/postgres/statements.ts';
import type { CloudUnavailability, HolderAddress } from '../protocol/cloud_views.ts';
import { ERRORS } from '../protocol/errors.ts';
import type { Node } from '../runtime/actor.ts';
import { deferred } from '../runtime/deferred.ts';
import { DATABASE } from '../settings/cloud_limits.ts';
import { type DatabaseAddress, readDatabaseUrl } from '../settings/database_url.ts';
import { report } from './daemon_log.ts';
import { endThread } from './end_thread.ts';
import { startCloud, vaultOf } from './start_cloud.ts';
import type { ThreadData } from './thread_data.ts';

const NO_FENCE: HeldLease = {
  fence: { member: '', token: '0' },
  isValid: () => true,
  onFenced: () => undefined,
};

class SharedCloud {
  /** Resolves when it is known whether this Berth runs the cloud part. */
  readonly decided = deferred<void>();
  private readonly node: Node;
  private readonly data: ThreadData;
  private readonly host: string;
  private readonly address: DatabaseAddress;
  private readonly connection: DatabaseConnection;
  private told = '';
  private isStopped = false;

  constructor(node: Node, data: ThreadData, host: string) {
    this.node = node;
    this.data = data;
    this.host = host;
    this.address = readDatabaseUrl(data.cloud.databaseUrl);
    this.connection = this.connect('store');
    node.scope.defer(() => {
      this.isStopped = true;
      this.connection.close();
    });
  }

  private connect(purpose: string): DatabaseConnection {
    return new DatabaseConnection(this.address, { purpose, deadlineMs: DATABASE.statementTimeoutMs });
  }

  async run(): Promise<void> {
    if (!(await this.prepare())) return;
    const { advertised, changePermit } = this.data.cloud;
    const lease = new Lease({
      address: this.address,
      clock: this.node.clock,
      host: this.host,
      ownAddress: advertised && JSON.stringify(advertised),
      changePermit,
      onHeld: (fence) => this.hold(lease, fence).then(this.decided.resolve, endOnDefect),
      onLost: (reason) =>
        endThread(`this replica has lost the lease of the shared database, and stands by: ${reason}`),
      onStandby: (name, address) => this.standBy(name, readAddress(address)),
      onTrouble: (error) => this.tellTrouble(error),
    });
    this.node.scope.defer(() => lease.release());
    lease.start();
  }

  /** Resolves with whether the database is ready and its key is available here. */
  private async prepare(): Promise<boolean> {
    for (
      let waitMs: number = DATABASE.retryMs;
      !this.isStopped;
      waitMs = Math.min(2 * waitMs, DATABASE.maxRetryMs)
    ) {
      try {
        await checkServer(this.address, this.connection);
        const { from, to } = await migrate(this.connection, true);
        if (from !== to) report(`the schema of the shared database was made, format ${to}`);
        const store = postgresCloudStore(this.connection, NO_FENCE);
        if ((await store.canary.read()) === null) return true;
        const vault = await vaultOf(this.node, this.data.cloud.keyFile, store);
        if (!vault) this.decided.resolve();
        return vault !== null;
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        this.tellTrouble(error);
        await pause(waitMs * (1 + Math.random()));
      }
    }
    return false;
  }

  private async hold(lease: Lease, fence: Fence): Promise<void> {
    try {
      // A newer Berth may have migrated the database since this one began to stand by.
      await migrate(this.connection, true);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      await lease.release();
      return endThread(`the database ${this.address.label}: ${error.message}`);
    }
    const held: HeldLease = {
      fence,
      isValid: () => lease.isValid(),
      onFenced: () => lease.onFenced(),
    };
    const store = postgresCloudStore(this.connection, held);
    const vault = await vaultOf(this.node, this.data.cloud.keyFile, store);
    if (!vault) return lease.release();
    if (this.told !== '') report('this Berth has the clusters now');
    // One name for all Berths of the database, so that a sleep by one counts as its own for the next.
    const self = `shared/${vault.kek.slice(0, 8)}`;
    await startCloud(this.node, this.data, {
      store,
      openHistory: () => openPostgresHistory(this.connect('events'), held),
      vault,
      self,
    });
  }

  private standBy(name: string, holder: HolderAddress | null): void {
    this.tell('standing_by', `this Berth stands by: ${name} has the clusters`, holder);
    const { host, relayPort = null } = holder ?? {};
    // At each beat, because the relay's thread may have restarted.
    if (this.data.cloud.relay && host !== undefined && relayPort !== null)
      this.node.ref('relay').tell('passOn', { target: { host, port: relayPort } });
  }

  private tellTrouble({ message }: DatabaseError): void {
    this.tell('database_unusable', `the database ${this.address.label}: ${message}`);
  }

  private tell(code: CloudUnavailability, reason: string, holder: HolderAddress | null = null): void {
    const told = JSON.stringify([reason, holder]);
    if (this.told !== told) {
      this.told = told;
      report(reason);
      this.node.ref('cloudviews').tell('unavailable', { code, reason, hint: ERRORS[code].hint, holder });
    }
    this.decided.resolve();
  }
}

/** The address published by a Berth; null: none, or in the format of another version. */
function readAddress(text: string | null): HolderAddress | null {
  if (text === null) return null;
  const { host, port, relayPort }: Partial<HolderAddress> = JSON.parse(text);
  const isKnown = typeof host === 'string' && typeof port === 'number';
  return isKnown ? { host, port, relayPort: typeof relayPort === 'number' ? relayPort : null } : null;
}

/** A promise that nobody awaits was rejected: a defect of this thread. */
function endOnDefect(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Resolves when it is known whether this Berth (`host` to the others) runs the cloud part. */
export async function setupShared(node: Node, data: ThreadData, host: string): Promise<void> {
  const shared = new SharedCloud(node, data, host);
  shared.run().catch(endOnDefect);
  await shared.decided.promise;
}
