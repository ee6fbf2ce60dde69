// A real pgbouncer of Debian before a Postgres of the tests.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePort } from './free_ports.ts';

const PROGRAM = '/usr/sbin/pgbouncer';
/** It refuses root. */
const NOBODY = 65_534;

export const hasPooler = existsSync(PROGRAM);
/** For the name of a test that is skipped without it. */
export const NO_POOLER = hasPooler ? '' : ' (skipped: no pgbouncer; apt install pgbouncer)';

export interface Pooler {
  readonly port: number;
  stop(): Promise<void>;
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });

/** Starts a pool of connections to the Postgres at `to`, to be stopped by the caller. */
export async function startPooler(to: number, mode: 'session' | 'transaction'): Promise<Pooler> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-pooler-'));
  const port = freePort();
  const users = join(folder, 'users');
  const config = join(folder, 'pgbouncer.ini');
  writeFileSync(users, '"postgres" ""\n');
  writeFileSync(
    config,
    `[databases]\n* = host=127.0.0.1 port=${to}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\n` +
      `unix_socket_dir =\nauth_type = trust\nauth_file = ${users}\npool_mode = ${mode}\n`,
  );
  chmodSync(folder, 0o755);
  const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (asUser.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
  const child: ChildProcess = spawn(PROGRAM, ['-q', config], { ...asUser, cwd: '/', stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await eventually(() => answers(port));
  return {
    port,
    async stop() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
