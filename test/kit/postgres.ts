// A real Postgres of Debian for the tests of a shared database: one server for each file that asks for it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { restartablePort } from './restartable_port.ts';

const FOLDERS = [17, 16, 15, 14, 13].map((major) => `/usr/lib/postgresql/${major}/bin`);
const BIN = FOLDERS.find((folder) => existsSync(join(folder, 'initdb')));
/** initdb refuses root. */
const NOBODY = 65_534;
const POLL_MS = 5;

export const hasPostgres = BIN !== undefined;
/** For the name of a test that is skipped without it. */
export const NO_POSTGRES = hasPostgres ? '' : ' (skipped: no Postgres; apt install postgresql)';

export interface PostgresServer {
  readonly port: number;
  /** Makes an empty database, and returns its URL. */
  createDatabase(): Promise<string>;
  /** Runs statements as the superuser. */
  run<Row = any>(url: string, text: string): Promise<Row[]>;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Ends its connections and itself in good order, and starts it again. */
  restart(): Promise<void>;
  /** A server that follows this one, which from now on answers only what that one has as well. */
  startStandby(): Promise<PostgresServer>;
  /** A standby takes writes from now on. */
  promote(): Promise<void>;
  /** Ends it, and removes its files. */
  remove(): Promise<void>;
}

export interface PostgresOptions {
  /** What it has answered survives the machine. */
  isDurable?: boolean;
  /** It also takes connections with TLS. */
  identity?: { cert: string; key: string };
}

class Server implements PostgresServer {
  port = 0;
  private readonly folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'));
  private process: ChildProcess | null = null;
  private readonly options: PostgresOptions;
  private readonly asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

  constructor(options: PostgresOptions) {
    this.options = options;
  }

  async init(): Promise<void> {
    this.fill('initdb', ['-U', 'postgres', '--auth=trust', '--no-sync', '-E', 'UTF8']);
    const { identity } = this.options;
    if (identity) {
      this.writeSecret('server.crt', identity.cert);
      this.writeSecret('server.key', identity.key);
    }
    await this.start();
  }

  async start(): Promise<void> {
    this.port ||= await restartablePort();
    const settings = [`port=${this.port}`, `unix_socket_directories=${this.folder}`];
    settings.push(
      `fsync=${this.options.isDurable ? 'on' : 'off'}`,
      `ssl=${this.options.identity ? 'on' : 'off'}`,
    );
    const args = ['-D', join(this.folder, 'data'), ...settings.flatMap((setting) => ['-c', setting])];
    const options = { ...this.asUser, cwd: '/', stdio: 'ignore' } as const;
    this.process = spawn(join(BIN ?? '', 'postgres'), args, options);
    const isUp = () => this.run(this.urlOf('postgres'), 'SELECT 1').catch(() => null);
    while ((await isUp()) === null) {
      if (this.process.exitCode !== null) throw new Error(`Postgres ended (${this.process.exitCode})`);
      await pause(POLL_MS);
    }
  }

  async kill(): Promise<void> {
    await this.end('SIGQUIT');
  }

  async restart(): Promise<void> {
    await this.end('SIGINT');
    await this.start();
  }

  async startStandby(): Promise<PostgresServer> {
    const standby = new Server(this.options);
    const from = ['-h', '127.0.0.1', '-p', String(this.port), '-U', 'postgres'];
    standby.fill('pg_basebackup', [...from, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']);
    await standby.start();
    const url = this.urlOf('postgres');
    await this.run(url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await this.run(url, 'SELECT pg_reload_conf()');
    const isSync = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    while ((await this.run(url, isSync)).length === 0) await pause(POLL_MS);
    return standby;
  }

  async promote(): Promise<void> {
    await this.run(this.urlOf('postgres'), 'SELECT pg_promote()');
  }

  async remove(): Promise<void> {
    await this.end('SIGINT');
    rmSync(this.folder, { recursive: true, force: true });
  }

  async createDatabase(): Promise<string> {
    const name = `berth_${randomBytes(6).toString('hex')}`;
    await this.run(this.urlOf('postgres'), `CREATE DATABASE ${name}`);
    return this.urlOf(name);
  }

  async run<Row>(url: string, text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** Makes the folder of its data with a program of Postgres. */
  private fill(program: string, args: readonly string[]): void {
    chmodSync(this.folder, 0o755);
    if (this.asUser.uid !== undefined) chownSync(this.folder, NOBODY, NOBODY);
    const all = ['-D', join(this.folder, 'data'), ...args];
    execFileSync(join(BIN ?? '', program), all, { ...this.asUser, cwd: '/', stdio: 'ignore' });
  }

  /** A file of the server beside its data, for its user alone. */
  private writeSecret(name: string, text: string): void {
    const path = join(this.folder, 'data', name);
    writeFileSync(path, text, { mode: 0o600 });
    if (this.asUser.uid !== undefined) chownSync(path, NOBODY, NOBODY);
  }

  private urlOf(database: string): string {
    return `postgresql://postgres@127.0.0.1:${this.port}/${database}`;
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { process: running } = this;
    this.process = null;
    if (!running || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill(signal);
    await ended;
  }
}

/** Starts a server, to be removed by the caller. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const server = new Server(options);
  await server.init();
  return server;
}
