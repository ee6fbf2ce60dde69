// Statements of the Berth that holds the lease of a shared database.
import { setTimeout as pause } from 'node:timers/promises';
import { fail } from '../../protocol/errors.ts';
import { DATABASE } from '../../settings/cloud_limits.ts';
import { type DatabaseConnection, DatabaseError } from './connection.ts';
import type { Fence } from './lease.ts';

/** What a store needs from the lease. */
export interface HeldLease {
  fence: Fence;
  isValid(): boolean;
  /** The database reports that another Berth has it. */
  onFenced(): void;
}

/**
 * The statements of a store, in the order requested. Each is repeated until it succeeds or the lease is lost.
 */
export class Statements {
  private readonly connection: DatabaseConnection;
  private readonly lease: HeldLease;
  private last: Promise<unknown> = Promise.resolve();

  constructor(connection: DatabaseConnection, lease: HeldLease) {
    this.connection = connection;
    this.lease = lease;
  }

  run<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.inTurn(() => this.persist(() => this.connection.query<R>(text, values)));
  }

  /** Like `run`, and converts each row as it arrives. */
  read<R, T>(text: string, values: readonly unknown[], convert: (row: R) => T): Promise<T[]> {
    return this.inTurn(() => this.persist(() => this.connection.read(text, values, convert)));
  }

  /** Calls a function that writes, with the fence as its first arguments. */
  async call<R>(name: string, ...values: unknown[]): Promise<R | undefined> {
    const places = values.map((_, index) => `$${index + 3}`).join(', ');
    const { member, token } = this.lease.fence;
    const text = `SELECT berth.${name}($1, $2, ${places}) AS result`;
    const [row] = await this.run<{ result: R }>(text, [member, token, ...values]);
    return row?.result;
  }

  private inTurn<R>(work: () => Promise<R>): Promise<R> {
    const result = this.last.then(work);
    this.last = result.catch(() => undefined);
    return result;
  }

  private async persist<R>(ask: () => Promise<R>): Promise<R> {
    for (let waitMs: number = DATABASE.retryMs; ; waitMs = Math.min(2 * waitMs, DATABASE.maxRetryMs)) {
      if (!this.lease.isValid())
        throw fail('standing_by', 'this replica has lost the lease of the shared database');
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        if (error.kind === 'full')
          throw fail('storage_full', `the shared database: ${error.message}`, {
            hint: "Free space on the database's disk and try again.",
          });
        if (error.kind === 'fenced') this.lease.onFenced();
        else if (error.kind === 'never') throw error;
        else await pause(waitMs * (1 + Math.random()));
      }
    }
  }
}
