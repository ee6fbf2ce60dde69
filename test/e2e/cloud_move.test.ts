// The keys of `berth cloud move`: docs/reference.md "Shared database", by the built program and a real Postgres.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';
import { type Double, kubeDouble, workload } from '../kit/kube_double.ts';
import { must } from '../kit/must.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../kit/postgres.ts';

let postgres: PostgresServer | undefined;
let double: Double;
beforeAll(async () => {
  double = await kubeDouble();
  if (hasPostgres) postgres = await startPostgres();
}, 60_000);
afterAll(async () => {
  await postgres?.remove();
  await double.stop();
});

const CONFIG = '[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = -1\n';
const SAID = '1 clusters, 1 workloads, 0 policies, 0 tokens are in the database\n';

function newKey(): string {
  const path = join(newFolder(), 'team.key');
  writeFileSync(path, randomBytes(32), { mode: 0o600 });
  return path;
}

const ask = (server: Daemon, method: string, path: string, body?: unknown) =>
  server.request(method, path, body, { Authorization: 'Bearer cloud' });

const serve = (env: Record<string, string>): Promise<Daemon> =>
  startDaemon({ config: CONFIG, env, command: ['cloud', 'serve'] });

/** Stops a server of its own state directory, with one workload asleep, and returns its command `move`. */
async function stateWith(name: string, env: Record<string, string>) {
  const alone = await serve(env);
  double.put('Deployment', workload(name, name, 3));
  const kubeconfig = double.kubeconfig;
  const cluster = (await ask(alone, 'POST', '/k8s/clusters', { name, kubeconfig, namespaces: [name] })).body;
  await ask(alone, 'POST', `/k8s/clusters/${cluster.id}/sync`);
  const [{ id }] = (await ask(alone, 'GET', '/k8s/workloads')).body;
  expect((await ask(alone, 'POST', `/k8s/workloads/${id}/sleep`)).status).toBe(200);
  await stopDaemon(alone);
  const move = (given: Record<string, string>, ...more: string[]) =>
    spawnSync(
      process.execPath,
      [BIN, 'cloud', 'move', '--state-dir', alone.stateDir, '--config', alone.configFile, ...more],
      { encoding: 'utf8', env: { ...process.env, ...given } },
    );
  return { id, move };
}

/** A database that the key of `BERTH_CLOUD_KEY_FILE` has sealed. */
async function sealedDatabase(): Promise<Record<string, string>> {
  const env = { BERTH_DATABASE_URL: await must(postgres).createDatabase(), BERTH_CLOUD_KEY_FILE: newKey() };
  await stopDaemon(await serve(env));
  return env;
}

describe.skipIf(!hasPostgres)(`berth cloud move between two keys${NO_POSTGRES}`, () => {
  test('opens the kubeconfigs with the key in the state directory, and seals them with that of the database', async () => {
    const { id, move } = await stateWith('sealed', {});
    const { BERTH_DATABASE_URL = '', ...key } = await sealedDatabase();
    const refused = move({ BERTH_DATABASE_URL });
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(
      /the database 127\.0\.0\.1:.*: the key in .*cloud\.key is not the one that the store is sealed with.*\n.*BERTH_CLOUD_KEY_FILE/,
    );
    const env = { BERTH_DATABASE_URL, ...key };
    expect(move(env)).toMatchObject({ status: 0, stdout: SAID });
    const shared = await serve(env);
    expect((await ask(shared, 'POST', `/k8s/workloads/${id}/wake`)).body).toMatchObject({ replicas: 3 });
  });

  test('asks for the key of the state directory where it is in neither place', async () => {
    const own = newKey();
    const { id, move } = await stateWith('elsewhere', { BERTH_CLOUD_KEY_FILE: own });
    const env = { BERTH_DATABASE_URL: await must(postgres).createDatabase(), BERTH_CLOUD_KEY_FILE: newKey() };
    expect(move(env)).toMatchObject({ status: 1, stderr: expect.stringContaining('--from-key') });
    expect(move(env, '--from-key', own)).toMatchObject({ status: 0, stdout: SAID });
    const shared = await serve(env);
    expect((await ask(shared, 'POST', `/k8s/workloads/${id}/wake`)).body).toMatchObject({ replicas: 3 });
  });

  test('remembers who has used the database when its key is refused', async () => {
    const { move } = await stateWith('remembered', {});
    const env = { BERTH_DATABASE_URL: await must(postgres).createDatabase(), BERTH_CLOUD_KEY_FILE: newKey() };
    expect(move(env).status).toBe(0);
    await stopDaemon(await serve(env));
    expect(move({ ...env, BERTH_CLOUD_KEY_FILE: newKey() }, '--replace').status).toBe(1);
    expect(move(env)).toMatchObject({ status: 1, stderr: expect.stringContaining('has used the database') });
  });
});
