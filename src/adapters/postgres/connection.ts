// One connection to Postgres. The only file that imports pg.
//
// pg's own timeout leaves a client that never answers again, so a deadline here ends the socket. A query on a
// lost connection fails; the next one reconnects.
import { readFileSync } from 'node:fs';
import { isIP, Socket } from 'node:net';
import pg from 'pg';
import { DATABASE } from '../../settings/cloud_limits.ts';
import type { DatabaseAddress } from '../../settings/database_url.ts';
import { VERSION } from '../../settings/version.ts';

/**
 * How to handle an error. `again`: retry, because the database cannot be reached or is busy; `never`: a retry
 * would fail too; `full`: free its disk; `fenced`: another Berth has the lease.
 */
export type DatabaseErrorKind = 'again' | 'never' | 'full' | 'fenced';

/** An error of the database or the connection to it. The message is one line, without a password. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  readonly kind: DatabaseErrorKind;
  /** The SQLSTATE; null: the error is not the server's. */
  readonly state: string | null;

  constructor(kind: DatabaseErrorKind, message: string, state: string | null = null) {
    super(message);
    this.kind = kind;
    this.state = state;
  }
}

/** The SQLSTATE of a write refused for lack of the lease: see migrations.ts. */
const FENCED = 'BF001';
const DISK_FULL = '53100';
/**
 * Classes of temporary errors: connection, rollback, resources, operator, and a server that has become
 * read-only.
 */
const PASSING = /^(08|40|53|57|25006|55006)/;

const oneLine = (text: string): string => text.split('\n')[0] ?? '';

function databaseError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  if (error instanceof pg.DatabaseError) {
    const state = error.code ?? '';
    const kind = PASSING.test(state) ? 'again' : 'never';
    const known = state === FENCED ? 'fenced' : state === DISK_FULL ? 'full' : kind;
    return new DatabaseError(known, oneLine(error.message), state);
  }
  const { message, code, errors } = error as NodeJS.ErrnoException & { errors?: Error[] };
  // A name with several addresses has one error for each.
  const first = errors?.[0] as NodeJS.ErrnoException | undefined;
  return new DatabaseError('again', oneLine(message || first?.message || code || 'no answer'));
}

export interface ConnectionOptions {
  /** Its purpose, shown in pg_stat_activity. */
  purpose: string;
  /** The time limit of each query, connecting included, in milliseconds. */
  deadlineMs: number;
  /** Run on each new connection before anything else. */
  greeting?: readonly string[];
  /** Receives the channel of each notification. */
  onNotice?: (channel: string) => void;
  /** The connection was lost between two queries. */
  onLost?: () => void;
}

interface Line {
  client: pg.Client;
  socket: Socket;
}

export class DatabaseConnection {
  private readonly address: DatabaseAddress;
  private readonly options: ConnectionOptions;
  private line: Line | null = null;
  private last: Promise<unknown> = Promise.resolve();
  private isClosed = false;
  /** The line of the transaction under way; null: it was lost right away. Undefined: there is none. */
  private pinned: Line | null | undefined;

  constructor(address: DatabaseAddress, options: ConnectionOptions) {
    this.address = address;
    this.options = options;
  }

  /** Runs one statement, after those requested earlier. Fails with a DatabaseError. */
  query<Row = unknown>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.inTurn(async (client) => {
      const { rows } = await (values.length > 0 ? client.query(text, [...values]) : client.query(text));
      return rows as Row[];
    });
  }

  /** Like `query`, and converts each row as it arrives: a long result is not held as text. */
  read<Row, T>(text: string, values: readonly unknown[], convert: (row: Row) => T): Promise<T[]> {
    return this.inTurn((client) => readRows(client, new pg.Query(text, [...values]), convert));
  }

  /**
   * Runs `work` within one transaction, which is rolled back if it fails. Once the connection is lost, its
   * queries fail with a DatabaseError: on a new connection they would be outside the transaction.
   */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.query('BEGIN');
    this.pinned = this.line;
    try {
      const result = await work();
      await this.query('COMMIT');
      return result;
    } catch (error) {
      // The end of its connection rolls it back, whatever state it is in.
      this.drop();
      throw error;
    } finally {
      this.pinned = undefined;
    }
  }

  /** Ends the session: the next query begins a new one. */
  reconnect(): void {
    this.drop();
  }

  /** Ends the connection, and with it any running query. */
  close(): void {
    this.isClosed = true;
    this.drop();
  }

  private inTurn<R>(ask: (client: pg.Client) => Promise<R>): Promise<R> {
    const result = this.last.then(() => this.run(ask));
    this.last = result.catch(() => undefined);
    return result;
  }

  private async run<R>(ask: (client: pg.Client) => Promise<R>): Promise<R> {
    if (this.isClosed) throw new DatabaseError('never', 'the connection is closed');
    const { deadlineMs } = this.options;
    let timer: NodeJS.Timeout | undefined;
    const expired = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new DatabaseError('again', `no answer within ${deadlineMs / 1_000} s`));
        this.drop();
      }, deadlineMs);
    });
    try {
      return await Promise.race([this.attempt(ask), expired]);
    } catch (error) {
      const failure = databaseError(error);
      // An error that is not the server's leaves the connection in an unknown state.
      if (failure.state === null || failure.kind === 'again') this.drop();
      throw failure;
    } finally {
      clearTimeout(timer);
    }
  }

  private async attempt<R>(ask: (client: pg.Client) => Promise<R>): Promise<R> {
    if (this.pinned !== undefined && (this.line === null || this.line !== this.pinned))
      throw new DatabaseError('again', 'the connection was lost within a transaction');
    this.line ??= await this.open();
    return ask(this.line.client);
  }

  private async open(): Promise<Line> {
    const { host, port, database, user, password, isEncrypted, caFile } = this.address;
    const { purpose, greeting = [], onNotice, onLost, deadlineMs } = this.options;
    const socket = new Socket();
    const ssl = {
      // An IP address is verified too, but without a server name.
      ...(host.startsWith('/') ? {} : isIP(host) ? { host } : { servername: host }),
      ...(caFile && { ca: readCa(caFile) }),
    };
    const client = new pg.Client({
      ...{ host, port, database, user, keepAlive: true, ssl: isEncrypted && ssl },
      ...(password !== undefined && { password }),
      application_name: `berth ${VERSION} ${purpose}`,
      connectionTimeoutMillis: DATABASE.connectTimeoutMs,
      stream: () => socket,
    });
    const line = { client, socket };
    client.on('error', () => undefined);
    client.on('end', () => {
      if (this.line !== line) return;
      this.line = null;
      onLost?.();
    });
    client.on('notification', ({ channel }) => onNotice?.(channel));
    try {
      await client.connect();
      // A shorter limit of the role or the database would fail the same statement again at every retry.
      await client.query(`SET statement_timeout = ${deadlineMs}`);
      for (const statement of greeting) await client.query(statement);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    if (this.isClosed) socket.destroy();
    return line;
  }

  private drop(): void {
    const { line } = this;
    this.line = null;
    line?.socket.destroy();
  }
}

/** The converted rows of a query. Fails with a DatabaseError for a row that cannot be converted. */
function readRows<Row, T>(client: pg.Client, query: pg.Query, convert: (row: Row) => T): Promise<T[]> {
  return new Promise((resolve, reject) => {
    const rows: T[] = [];
    query.on('row', (row: Row) => {
      // An exception here would end the process. pg reads the result to its end all the same.
      try {
        rows.push(convert(row));
      } catch (error) {
        reject(new DatabaseError('never', `a row cannot be read: ${oneLine((error as Error).message)}`));
      }
    });
    query.on('end', () => resolve(rows));
    query.on('error', reject);
    client.query(query);
  });
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new DatabaseError('again', `sslrootcert: ${oneLine((error as Error).message)}`);
  }
}
