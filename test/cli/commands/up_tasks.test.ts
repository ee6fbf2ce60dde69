// `berth up` with a database, a migration and two services that need it, again and again.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

/** More of them, beside busy loops, show what a single one may not: `BERTH_UP_ROUNDS=100`. */
const ROUNDS = Number(process.env['BERTH_UP_ROUNDS'] ?? 3);

const PROGRAMS = {
  // Listens late, as a database does.
  'db.mjs': `import { createServer } from 'node:http';
    setTimeout(() => createServer((q, r) => r.end()).listen(process.env.PORT, '127.0.0.1'), Math.random() * 300);`,
  'migrate.mjs': `import { appendFileSync } from 'node:fs';
    await fetch(process.env.URL_DB);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 300));
    appendFileSync('migrations', 'one\\n');`,
  'server.mjs': `import { existsSync } from 'node:fs';
    import { createServer } from 'node:http';
    if (!existsSync('migrations')) process.exit(7);
    createServer((q, r) => r.end()).listen(process.env.PORT, '127.0.0.1');`,
};

const FILE = `services:
  db: { cmd: exec node db.mjs, port: auto, ready: tcp }
  migrate: { cmd: exec node migrate.mjs, kind: task, depends_on: [db] }
  api: { cmd: exec node server.mjs, port: auto, ready: tcp, depends_on: { migrate: { condition: completed } } }
  web: { cmd: exec node server.mjs, port: auto, ready: tcp, depends_on: [api, migrate] }
`;

it(`berth up with tasks succeeds ${ROUNDS} times of ${ROUNDS}`, {
  timeout: 30_000 + ROUNDS * 15_000,
}, async () => {
  const daemon = await daemonOf();
  const home = folder();
  const app = join(home, 'app');
  mkdirSync(app);
  for (const [name, text] of Object.entries({ ...PROGRAMS, 'berth.yaml': FILE }))
    writeFileSync(join(app, name), text);
  const migrations = join(app, 'migrations');
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const run = (command: string) => berth([command], { cwd: app, env });
  const statuses = async (): Promise<Record<string, string>> => {
    const { body } = await daemon.request('GET', '/v1/services');
    return Object.fromEntries(body.services.map((one: any) => [one.service, one.status]));
  };
  for (let round = 1; round <= ROUNDS; round += 1) {
    rmSync(migrations, { force: true });
    const up = await run('up');
    expect([round, up.code, up.stderr]).toEqual([round, 0, expect.not.stringContaining('✗')]);
    expect(await statuses()).toEqual({ api: 'running', db: 'running', migrate: 'completed', web: 'running' });
    expect(readFileSync(migrations, 'utf8')).toBe('one\n');
    // Nothing has changed, so neither runs the migration again.
    expect((await run('up')).code).toBe(0);
    expect(readFileSync(migrations, 'utf8')).toBe('one\n');
    expect((await run('down')).code).toBe(0);
  }
});

it('berth up starts nothing that depends on a failed task, and prints its last lines', async () => {
  const daemon = await daemonOf();
  const home = folder();
  const app = join(home, 'app');
  mkdirSync(app);
  const started = join(app, 'started');
  const file = `services:
  migrate: { cmd: "echo no such table; exit 3", kind: task }
  api: { cmd: "touch started; sleep 1000", port: null, depends_on: [migrate] }
`;
  writeFileSync(join(app, 'berth.yaml'), file);
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const up = await berth(['up'], { cwd: app, env });
  expect(up.code).not.toBe(0);
  expect(up.stderr).toMatch(/✗ migrate: .*exit code 3[\s\S]*no such table/);
  expect(up.stderr).toContain('✗ api: not started: it needs migrate');
  expect(existsSync(started)).toBe(false);
});
