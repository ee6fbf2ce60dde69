// Files as the documentation of docker compose, process-compose, foreman and npm shows them: what they say is
// carried over, or named in a warning.
import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { stringifyProject } from '../../src/project/imported_project.ts';
import { importerOf, importProject } from '../../src/project/importers.ts';
import { parseProject } from '../../src/project/read_project.ts';
import { must } from '../kit/must.ts';
import { folder, put } from './import_folder.ts';

/** Imports a file, and has what was made of it accepted as a project file. */
async function imported(name: string, text: string) {
  const path = put(name, text);
  const written = must(await importProject(path));
  await parseProject(stringifyProject(written.services, []), join(folder, 'berth.yaml'), {});
  const found = must(importerOf(path)).read(text, path);
  const services = found.services.map((service) =>
    Object.fromEntries(Object.entries(service).filter(([, value]) => value !== undefined)),
  );
  return { services, notes: found.notes };
}

const COMPOSE = `
name: shop
services:
  web:
    build: .
    ports: ["8000:5000"]
    stop_grace_period: 1m30s
    develop:
      watch: [{ action: sync, path: ., target: /code }]
    depends_on:
      db: { condition: service_healthy, restart: true }
      migrate: { condition: service_completed_successfully }
      redis: { condition: service_started }
  migrate:
    build: .
    command: ./manage.py migrate
    depends_on: [db]
  redis:
    image: redis
    healthcheck: { test: ["NONE"] }
  db:
    image: postgres:18
    ports:
      - target: 5432
        published: \${DB_PORT:-5433}
    healthcheck:
      test: ["CMD-SHELL", "pg_isready -U $$POSTGRES_USER"]
      interval: 10s
      retries: 5
      start_period: 30s
      timeout: 10s
  tools: { image: busybox, profiles: [debug], extends: { service: web } }
volumes: { data: {} }
`;

describe('the import of a compose file', () => {
  it('hands names that the shell would read otherwise to docker as they are', async () => {
    const text =
      'services: {"$(touch made)": {image: a, depends_on: {"it\'s": {condition: service_completed_successfully}}}, "it\'s": {image: b}}';
    const { services } = await imported('my compose.yaml', text);
    const up = "docker compose -f 'my compose.yaml' up --no-deps --no-log-prefix";
    expect(services.map(({ cmd }) => cmd)).toEqual([
      `${up} '$(touch made)'`,
      `${up} --exit-code-from 'it'\\''s' 'it'\\''s'`,
    ]);
  });

  it('keeps conditions, checks, durations and stops', async () => {
    const { services, notes } = await imported('compose.yaml', COMPOSE);
    const up = 'docker compose -f compose.yaml up --no-deps --no-log-prefix';
    const health =
      'docker inspect -f "{{.State.Health.Status}}" $(docker compose -f compose.yaml ps -q db) | grep -qx healthy';
    expect(services).toEqual([
      {
        name: 'web',
        cmd: `${up} web`,
        port: 8000,
        ready: 'tcp',
        depends_on: ['db', 'migrate', 'redis'],
        stop: { grace: '95s' },
      },
      {
        name: 'migrate',
        cmd: `${up} --exit-code-from migrate migrate`,
        kind: 'task',
        port: null,
        depends_on: ['db'],
        stop: { grace: '15s' },
      },
      { name: 'redis', cmd: `${up} redis`, port: null, stop: { grace: '15s' } },
      {
        name: 'db',
        cmd: `${up} db`,
        port: '${DB_PORT:-5433}',
        protocol: 'tcp',
        ready: { exec: health, interval: 5_000, timeout: 10_000 },
        start_timeout: '90s',
        stop: { grace: '15s' },
      },
      { name: 'tools', cmd: `${up} tools`, port: null, stop: { grace: '15s' } },
    ]);
    expect(notes).toEqual([
      'web: develop is left out; `docker compose watch web` does it',
      'web: depends_on.db.restart is left out',
      'tools: profiles is left out; name the services you want to `berth up`',
      'tools: ports and checks that it gets by extends are left out, which only docker compose reads',
    ]);
  });

  it('recognizes an image that does not speak HTTP, whatever its port', async () => {
    const image = (name: string, at: number) =>
      `  s${at}: { image: "${name}", ports: ["${7000 + at}:7000"] }\n`;
    const names = [
      'redis:7',
      'docker.io/library/postgres',
      'registry:5000/valkey@sha256:0a',
      'redis/ui',
      'web',
    ];
    const { services } = await imported('compose.yaml', `services:\n${names.map(image).join('')}`);
    expect(services.map(({ protocol }) => protocol)).toEqual(['tcp', 'tcp', 'tcp', undefined, undefined]);
  });

  it('reads it as docker compose does if that is installed', async () => {
    const config = {
      services: {
        tools: {
          image: 'busybox',
          ports: [{ mode: 'ingress', target: 80, published: '8080', protocol: 'tcp' }],
        },
        included: { image: 'x', depends_on: { tools: { condition: 'service_started', required: true } } },
      },
    };
    const docker = put(
      'docker',
      `#!/bin/sh\necho "$@" > '${folder}/asked'\ncat '${put('config.json', JSON.stringify(config))}'\n`,
    );
    chmodSync(docker, 0o755);
    vi.stubEnv('PATH', [folder, '/usr/bin', '/bin'].join(delimiter));
    const { services, notes } = await imported('compose.yaml', 'include: [other.yaml]\nservices: {}\n');
    expect(services).toMatchObject([
      { name: 'tools', port: 8080, ready: 'tcp' },
      { name: 'included', port: null, depends_on: ['tools'] },
    ]);
    expect(notes).toEqual([]);
  });

  it.each([
    ['refuses it', 'echo "services.a is no map" >&2; exit 15', 'services.a is no map'],
    ['fails without a word', 'exit 1', 'exit code 1'],
  ])('says why docker did not read it if it %s', async (_, script, reason) => {
    chmodSync(put('docker', `#!/bin/sh\n${script}\n`), 0o755);
    const { services, notes } = await imported(
      'compose.yaml',
      'include: [o.yaml]\nservices: { a: { image: x } }\n',
    );
    expect(services).toMatchObject([{ name: 'a' }]);
    expect(notes).toEqual([
      `the file: docker compose refuses it, so it is read without: ${reason}`,
      'the file: include is left out, which only docker compose reads',
    ]);
  });

  it('reads it without docker where docker has no compose', async () => {
    chmodSync(put('docker', `#!/bin/sh\necho "unknown shorthand flag: 'f' in -f" >&2; exit 125\n`), 0o755);
    expect((await imported('compose.yaml', 'services: { a: { image: x } }\n')).notes).toEqual([]);
  });
});

const PROCESS_COMPOSE = `
version: "0.5"
log_level: debug
environment: [SHARED=1]
processes:
  migrate:
    command: "./migrate"
    depends_on: { db: { condition: process_healthy } }
  db:
    command: "postgres -D data"
    is_tty: true
    readiness_probe:
      exec: { command: pg_isready }
      initial_delay_seconds: 5
      period_seconds: 2
      timeout_seconds: 3
      success_threshold: 1
      failure_threshold: 20
    shutdown: { command: "pg_ctl stop -D data", signal: 15, timeout_seconds: 20, parent_only: true }
    availability: { restart: always, backoff_seconds: 2, max_restarts: 5, exit_on_skipped: true }
  api:
    command: "./api --port 4000"
    depends_on:
      migrate: { condition: process_completed_successfully }
      queue: { condition: process_started }
    readiness_probe: { http_get: { host: 127.0.0.1, scheme: http, path: /health, port: 4000 } }
    liveness_probe:
      http_get: { port: 4000, path: live }
      period_seconds: 5
      failure_threshold: 4
    namespace: backend
  queue: { command: "./queue", ready_log_line: "listening (v1.0)" }
  worker:
    command: "./work --listen 0.0.0.0:7000"
    replicas: 2
    depends_on: { queue: { condition: process_log_ready }, gone: { condition: process_started } }
  off: { command: x, disabled: true }
`;

describe('the import of a process-compose file', () => {
  it('keeps conditions, probes, restarts, replicas and stops', async () => {
    const { services, notes } = await imported('process-compose.yaml', PROCESS_COMPOSE);
    const env = new Map([['SHARED', '1']]);
    const replica = (number: string) => new Map([...env, ['PC_REPLICA_NUM', number]]);
    const worker = { cmd: './work --listen 0.0.0.0:7000', port: 'auto', ready: 'tcp', depends_on: ['queue'] };
    expect(services).toEqual([
      { name: 'migrate', cmd: './migrate', kind: 'task', port: null, env, depends_on: ['db'] },
      {
        name: 'db',
        cmd: 'postgres -D data',
        port: null,
        ready: { exec: 'pg_isready', interval: 2_000, timeout: 3_000 },
        start_timeout: '45s',
        env,
        restart: { policy: 'always', min_ms: 2_000, max_ms: 2_000, max: 5 },
        stop: { command: 'pg_ctl stop -D data', signal: 'SIGTERM', grace: '20s' },
      },
      {
        name: 'api',
        cmd: './api --port 4000',
        port: 4000,
        ready: 'http://127.0.0.1:4000/health',
        live: { http: 'http://localhost:4000/live', interval: 5_000, failures: 4 },
        env,
        depends_on: { migrate: {}, queue: { condition: 'started' } },
        group: 'backend',
      },
      { name: 'queue', cmd: './queue', port: null, ready: { log: 'listening \\(v1\\.0\\)' }, env },
      { name: 'worker', ...worker, env: replica('0') },
      { name: 'worker-2', ...worker, env: replica('1') },
    ]);
    expect(notes).toEqual([
      'the file: log_level is left out',
      'db: is_tty, readiness_probe.success_threshold, shutdown.parent_only, availability.exit_on_skipped are left out',
      'worker: there is no process gone to wait for',
      'worker: its replicas cannot share port 7000; each has a free one in $PORT, which its command has to use',
      'off is disabled: left out',
    ]);
  });

  it('reports what behaves differently', async () => {
    const text = `
processes:
  a: { command: a, is_daemon: true, availability: { restart: exit_on_failure } }
  b: { command: b, depends_on: { a: { condition: process_completed } } }
  c: {}
`;
    expect((await imported('process-compose.yml', text)).notes).toEqual([
      'a: is_daemon is left out',
      'a: its failure ends nothing else (exit_on_failure)',
      'b: waits for a to succeed; process_completed would take a failure too',
      'c has no command: left out',
    ]);
  });
});

describe('a process whose end others wait for', () => {
  it('keeps its restarts, and what a task cannot have is reported', async () => {
    const text = `
processes:
  migrate:
    command: ./migrate
    availability: { restart: on_failure, backoff_seconds: 2, max_restarts: 3 }
    readiness_probe: { exec: { command: ./done }, failure_threshold: 9 }
    shutdown: { signal: 99 }
  loop:
    command: ./loop
    ready_log_line: done
    availability: { restart: always }
  odd: { command: ./odd, availability: { restart: sometimes } }
  api:
    command: ./api
    depends_on:
      migrate: { condition: process_completed_successfully }
      loop: { condition: process_completed_successfully }
`;
    const { services, notes } = await imported('process-compose.yaml', text);
    expect(services.slice(0, 2)).toEqual([
      {
        name: 'migrate',
        cmd: './migrate',
        kind: 'task',
        port: null,
        restart: { policy: 'on-failure', min_ms: 2_000, max_ms: 2_000, max: 3 },
        stop: { grace: '10s' },
      },
      { name: 'loop', cmd: './loop', kind: 'task', port: null },
    ]);
    expect(notes).toEqual([
      'migrate: readiness_probe is left out, as others wait for its end',
      'migrate: there is no signal 99: shutdown.signal is left out',
      'loop: ready_log_line is left out, as others wait for its end',
      'loop: restart always is left out, as others wait for its end',
      'odd: there is no restart policy sometimes: availability.restart is left out',
    ]);
  });
});

describe('the import of a Procfile', () => {
  it('adds a ready-check if the command names its port', async () => {
    const text = `web: bin/rails server -p \${PORT:-5000} -e development
api: uvicorn app:app --host 0.0.0.0 --port 8000
static: python3 -m http.server 8081
worker: bundle exec rake jobs:work
clock: PORT=70000 clock
`;
    const { services } = await imported('Procfile', text);
    expect(services.map(({ name, port, ready }) => [name, port, ready])).toEqual([
      ['web', 'auto', 'tcp'],
      ['api', 8000, 'tcp'],
      ['static', 8081, 'tcp'],
      ['worker', null, undefined],
      ['clock', null, undefined],
    ]);
  });
});

describe('the import of a package.json', () => {
  const commands = async (manifest: object) => {
    const { notes, services } = await imported('package.json', JSON.stringify(manifest));
    return { notes, services: services.map(({ name, cmd, port, ready }) => [name, cmd, port, ready]) };
  };

  it('has a service for dev and for every dev:*, and passes their port to known servers', async () => {
    const scripts = {
      build: 'tsc',
      dev: 'vite',
      'dev:api': 'node --watch api.mjs',
      'dev:docs': 'next dev docs',
      start: 'node .',
    };
    expect(await commands({ name: '@acme/shop', packageManager: 'pnpm@9.15.0', scripts })).toEqual({
      services: [
        ['shop', 'pnpm run dev --port $PORT --strictPort', 'auto', 'tcp'],
        ['api', 'pnpm run dev:api', 'auto', undefined],
        ['docs', 'pnpm run dev:docs', 'auto', 'tcp'],
      ],
      notes: ['api: its script names no port, so it must listen on $PORT'],
    });
  });

  it('does not start a script twice that dev runs', async () => {
    const scripts = {
      dev: "concurrently 'npm:dev:*'",
      'dev:web': 'vite --port 5173',
      'dev:api': 'PORT=4000 node .',
    };
    expect((await commands({ scripts })).services).toEqual([
      ['web', 'npm run dev:web', 5173, 'tcp'],
      ['api', 'npm run dev:api', 4000, 'tcp'],
    ]);
  });

  it('names the scripts that may run a service and are left out', async () => {
    put('apps/jobs/package.json', JSON.stringify({ scripts: { worker: 'node .', 'worker:build': 'tsc' } }));
    const scripts = {
      dev: "concurrently 'npm:client' 'yarn run ui' 'npm:mock:*'",
      ...{
        client: 'vite',
        ui: 'vite',
        'mock:dev': 'node .',
        start: 'node server.js',
        preview: 'vite preview',
      },
      ...{ server: 'node server.js', db: 'docker compose up', 'db:migrate': 'x', 'api:dev': 'y' },
      ...{ 'start:web': 'z', storybook: 'storybook dev', 'build:api': 'tsc', watch: 'tsc -w' },
    };
    const left = 'server, db, api:dev, start:web, storybook';
    const note = `left out, although they may run a service: ${left}`;
    expect((await commands({ scripts })).notes.at(-1)).toBe(note);
    const all = await commands({ scripts, workspaces: ['apps/*'] });
    expect(all.notes.at(-1)).toBe(`${note}, worker in apps/jobs`);
    expect((await commands({ scripts: { server: 'node .' } })).notes).toEqual([
      'there is no dev, start or serve script',
      'left out, although they may run a service: server',
    ]);
  });

  it('uses start if there is no dev, and passes options to the server through npm', async () => {
    expect((await commands({ scripts: { start: 'vite' } })).services).toEqual([
      ['web', 'npm run start -- --port $PORT --strictPort', 'auto', 'tcp'],
    ]);
    expect(
      (await commands({ packageManager: 'yarn@4.5.0', scripts: { serve: 'http-server' } })).services,
    ).toEqual([['web', 'yarn run serve --port $PORT', 'auto', 'tcp']]);
  });
});
