// The state directory of an earlier build works unchanged: docs/reference.md "State directory".
// `state-0.1.0.tar.gz` was written by version 0.1.0 as of commit bbf2998: three services, an agent, their
// logs and events, a cluster; then SIGTERM.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually, newFolder, startDaemon } from '../kit/daemon.ts';

const CLOUD_TOKEN = 'cloud-token-of-the-old-build';
/** The newest event in it. */
const NEWEST_EVENT = 18;

function unpack(): string {
  const folder = newFolder();
  const archive = join(import.meta.dirname, 'state-0.1.0.tar.gz');
  execFileSync('tar', ['-xzf', archive, '-C', folder, '--no-same-owner']);
  return join(folder, 'state');
}

it("today's daemon continues with the state that version 0.1.0 wrote", async () => {
  const daemon = await startDaemon({ stateDir: unpack(), config: `[cloud]\ntoken = "${CLOUD_TOKEN}"\n` });
  const get = async (path: string, headers = {}) =>
    (await daemon.request('GET', path, undefined, headers)).body;

  // Registrations, with defaults, revisions and the hash that a client compares.
  expect(await get('/v1/services/db')).toEqual({
    name: 'db',
    port: 25001,
    group: 'shop',
    status: 'stopped',
    url: 'http://localhost:25001',
    exitCode: null,
    signal: 'SIGINT',
    restarts: 0,
    cmd: 'echo db up; exec sleep 1000',
    cwd: '/tmp',
    ready: null,
    dependsOn: [],
    restart: 'on-failure',
    autostart: false,
    stopSignal: 'SIGINT',
    stopGrace: 1234,
    startTimeout: 4321,
    labels: ['berth.yaml'],
    // What that version did not know has its default.
    ...{
      envFile: [],
      limits: null,
      live: null,
      stop: null,
      watch: null,
      kind: 'service',
      sleep: null,
      inputs: [],
    },
    ...{ project: null, service: null, stack: null, gatewayUrl: expect.stringContaining('//db.localhost:') },
    schedule: null,
    protocol: 'http',
    revision: 1,
    stale: false,
    envKeys: ['A', 'B'],
    specHash: 'b288e2e51e5766ae06a9700066c4590ed5ec2d33cdd4ca2b1adacddf8eb9ffd4',
  });
  expect(await get('/v1/services/once')).toMatchObject({ status: 'stopped', exitCode: 7, signal: null });
  expect(await get('/v1/agents')).toMatchObject({
    agents: [{ name: 'helper', port: 25010, hostname: 'helper.agents.localhost', active: false }],
  });

  // Logs with the times of their lines, and events with their ids.
  expect(await get('/v1/services/once/logs?timestamps=true')).toEqual({
    name: 'once',
    port: 25003,
    lines: [expect.stringMatching(/^2026-11-22T\S+ one$/), expect.stringMatching(/^2026-11-22T\S+ two$/)],
  });
  expect(await get('/v1/agents/helper/logs')).toMatchObject({ lines: ['hello from a terminal'] });
  const { events } = await get('/v1/events/history?limit=1000');
  expect(events.slice(0, 11).map(({ id, type }: { id: number; type: string }) => `${id} ${type}`)).toEqual([
    ...[1, 2, 3, 4].map((id) => `${id} service.registered`),
    '5 service.removed',
    ...[6, 7, 8].map((id) => `${id} service.started`),
    '9 service.registered',
    '10 service.started',
    '11 service.crashed',
  ]);

  // Sealed values open: the environment of a service, and a cluster.
  expect((await daemon.request('POST', '/v1/services', REGISTRATION)).status).toBe(201);
  await daemon.request('POST', '/v1/services/db/start');
  await eventually(async () => (await get('/v1/services/db/logs')).lines.includes('A=1 B=two'));
  expect(await get('/k8s/clusters', { authorization: `Bearer ${CLOUD_TOKEN}` })).toMatchObject([
    { id: '01M82FX33PBG9R9E1CT0KBRH41', name: 'old', provider: 'other', in_cluster: false },
  ]);

  // New records continue behind the old ones.
  const after = (await get('/v1/events/history?limit=1000')).events;
  expect(after.at(-1).id).toBeGreaterThan(NEWEST_EVENT);
  expect(await get('/v1/services/api')).toMatchObject({ status: 'running', autostart: true });
});

/** Replaces only the command: an absent `env` keeps the stored values. */
const REGISTRATION = { name: 'db', port: 25001, cmd: 'echo "A=$A B=$B"; exec sleep 1000', group: 'shop' };
