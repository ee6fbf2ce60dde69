// The journal of cloud events in a database shared by several Berths. The holder of the lease continues the
// numbering, so an interrupted stream can continue at another Berth.
import { isFailure } from '../../runtime/actor.ts';
import { CLOUD_EVENTS, DATABASE } from '../../settings/cloud_limits.ts';
import { type CloudHistory, HistoryError } from '../storage/cloud_history.ts';
import type { DatabaseConnection } from './connection.ts';
import { type HeldLease, Statements } from './statements.ts';

interface EventRow {
  /** A bigint, returned as text. */
  id: string;
  line: string;
}

const NEWEST = 'SELECT id, line FROM berth.events WHERE id < $1 ORDER BY id DESC LIMIT $2';
const OLDEST = 'SELECT id, line FROM berth.events WHERE id > $1 ORDER BY id LIMIT $2';
const BOUNDS = 'SELECT coalesce(min(id), 0) AS first, coalesce(max(id), 0) AS last FROM berth.events';

class PostgresHistory implements CloudHistory {
  firstId = 0;
  lastId = 0;
  private readonly connection: DatabaseConnection;
  private readonly statements: Statements;
  private prunedAt = Number.NEGATIVE_INFINITY;

  constructor(connection: DatabaseConnection, lease: HeldLease) {
    this.connection = connection;
    this.statements = new Statements(connection, lease);
  }

  async readBounds(): Promise<void> {
    const [bounds] = await this.statements.run<{ first: string; last: string }>(BOUNDS);
    this.firstId = Number(bounds?.first ?? 0);
    this.lastId = Math.max(this.lastId, Number(bounds?.last ?? 0));
  }

  async write(lines: readonly string[]): Promise<void> {
    const first = this.lastId + 1;
    try {
      await this.statements.call('append_events_1', first, JSON.stringify(lines));
    } catch (error) {
      if (isFailure(error) && error.code === 'storage_full') throw new HistoryError(error.message);
      throw error;
    }
    this.lastId += lines.length;
    this.firstId ||= first;
  }

  prune(now: number): void {
    if (now - this.prunedAt < DATABASE.pruneMs) return;
    this.prunedAt = now;
    const maxAge = `${CLOUD_EVENTS.history.maxAgeMs} ms`;
    const done = this.statements.call('prune_events_1', maxAge).then(() => this.readBounds());
    // The next attempt follows in an hour. Without the lease, pruning is not this Berth's task.
    done.catch(() => undefined);
  }

  newestFirst(before: number): AsyncIterable<readonly string[]> {
    return this.parts(NEWEST, before);
  }

  oldestFirst(after: number): AsyncIterable<readonly string[]> {
    return this.parts(OLDEST, after);
  }

  close(): void {
    this.connection.close();
  }

  private async *parts(text: string, start: number): AsyncGenerator<string[], void> {
    for (let from: number | string = start; ; ) {
      const rows: EventRow[] = await this.statements.run<EventRow>(text, [from, DATABASE.rowsPerPart]);
      yield rows.map(({ line }) => line);
      const last = rows.at(-1);
      if (!last || rows.length < DATABASE.rowsPerPart) return;
      from = last.id;
    }
  }
}

/** Opens the journal on a connection of its own, which it closes. */
export async function openPostgresHistory(
  connection: DatabaseConnection,
  lease: HeldLease,
): Promise<CloudHistory> {
  const history = new PostgresHistory(connection, lease);
  await history.readBounds();
  return history;
}
