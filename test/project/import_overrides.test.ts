// Override files, which docker compose and process-compose read with the file beside them.
import { chmodSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { composeConfig } from '../../src/adapters/compose_config.ts';
import { importableFiles, importProject } from '../../src/project/importers.ts';
import { TEXT_FILE } from '../../src/settings/limits.ts';
import { must } from '../kit/must.ts';
import { folder, put } from './import_folder.ts';

const imported = async (name: string) => must(await importProject(join(folder, name)));
const services = async (name: string) =>
  (await imported(name)).services.map(({ name: service, cmd, port }) => [service, cmd, port]);

const BASE = 'services: { web: { image: nginx, depends_on: [db] }, db: { image: x, ports: ["5433:5432"] } }';
const OVERRIDE = `
services:
  web:
    ports: ["8080:80"]
    depends_on: { mail: { condition: service_healthy } }
  mail:
    image: mailhog
    healthcheck: { test: [CMD, x] }
`;

const up = (files: string) => `docker compose ${files} up --no-deps --no-log-prefix`;
const BOTH = up('-f compose.yaml -f docker-compose.override.yml');

describe('the import of a compose file with an override', () => {
  it('merges them, and its commands name both', async () => {
    put('compose.yaml', BASE);
    put('docker-compose.override.yml', OVERRIDE);
    put('docker-compose.override.yaml', 'services: { second: { image: x } }');
    expect(await services('compose.yaml')).toEqual([
      ['web', `${BOTH} web`, 8080],
      ['db', `${BOTH} db`, 5433],
      ['mail', `${BOTH} mail`, null],
    ]);
    const project = await imported('compose.yaml');
    expect(project.notes).toEqual([]);
    expect(project.services).toMatchObject([
      { depends_on: ['db', 'mail'] },
      {},
      {
        ready: { exec: expect.stringContaining('compose -f compose.yaml -f docker-compose.override.yml ps') },
      },
    ]);
  });

  it('asks docker compose for both', async () => {
    put('compose.yaml', BASE);
    put('docker-compose.override.yml', 'services: {}');
    const config = put('config.json', JSON.stringify({ services: { mail: { image: 'mailhog' } } }));
    chmodSync(put('docker', `#!/bin/sh\necho "$@" > '${folder}/asked'\ncat '${config}'\n`), 0o755);
    vi.stubEnv('PATH', [folder, '/usr/bin', '/bin'].join(delimiter));
    expect(await services('compose.yaml')).toEqual([['mail', `${BOTH} mail`, null]]);
    expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe(
      'compose -f compose.yaml -f docker-compose.override.yml --profile * config --format json\n',
    );
  });

  it('does not wait for a docker that hangs and ignores SIGTERM', () => {
    chmodSync(put('docker', `#!/bin/sh\ntrap '' TERM\nexec sleep 1000\n`), 0o755);
    vi.stubEnv('PATH', [folder, '/usr/bin', '/bin'].join(delimiter));
    expect(composeConfig(folder, ['compose.yaml'], 500)).toEqual({
      json: null,
      refusal: expect.stringContaining('ETIMEDOUT'),
    });
  });

  it('reads a file of another name alone, as with docker compose -f', async () => {
    put('compose.override.yaml', OVERRIDE);
    put('docker-compose.prod.yml', 'services: { web: { image: nginx } }');
    expect(await services('docker-compose.prod.yml')).toEqual([
      ['web', `${up('-f docker-compose.prod.yml')} web`, null],
    ]);
  });

  it('names the file of a mistake', async () => {
    put('compose.yaml', BASE);
    put('compose.override.yml', 'services: [\n');
    await expect(importProject(join(folder, 'compose.yaml'))).rejects.toThrow(/^compose\.override\.yml:\d/);
  });

  it.each(['ports: !reset []', 'ports: !override ["9090:80"]'])(
    'warns about %s without docker',
    async (row) => {
      put('compose.yaml', BASE);
      put('compose.override.yml', `services: { db: { ${row} } }`);
      expect((await imported('compose.yaml')).notes).toEqual([
        'the file: !reset and !override are left out, which only docker compose reads',
      ]);
    },
  );
});

describe('COMPOSE_FILE', () => {
  const FILES = up('-f compose.dev.yml -f ./more.yml');
  beforeEach(() => {
    put('compose.yaml', BASE);
    put('compose.override.yaml', OVERRIDE);
    put('compose.dev.yml', 'services: { dev: { image: x } }');
    put('more.yml', 'services: { more: { image: x } }');
  });

  it.each([
    ['in .env', () => put('.env', 'COMPOSE_FILE=compose.dev.yml:./more.yml\n')],
    [
      'of the shell, which wins over .env,',
      () => {
        put('.env', 'COMPOSE_FILE=compose.yaml\n');
        vi.stubEnv('COMPOSE_FILE', 'compose.dev.yml,./more.yml');
        vi.stubEnv('COMPOSE_PATH_SEPARATOR', ',');
      },
    ],
  ])('%s names the files', async (_, given) => {
    given();
    expect(importableFiles(folder)).toEqual(['compose.dev.yml', 'compose.yaml'].map((f) => join(folder, f)));
    expect(await services('compose.dev.yml')).toEqual([
      ['dev', `${FILES} dev`, null],
      ['more', `${FILES} more`, null],
    ]);
  });

  it('is not looked for in a .env that cannot be read', () => {
    put('.env', 'x'.repeat(TEXT_FILE.maxBytes + 1));
    expect(importableFiles(folder)).toEqual([join(folder, 'compose.yaml')]);
  });

  it('does not change a file that it does not name, with a warning', async () => {
    vi.stubEnv('COMPOSE_FILE', 'compose.dev.yml');
    const { services: found, notes } = await imported('compose.yaml');
    expect(found.map(({ cmd }) => cmd)).toEqual(
      ['web', 'db'].map((key) => `${up('-f compose.yaml')} ${key}`),
    );
    expect(notes).toEqual(['the file is read alone: COMPOSE_FILE names compose.dev.yml']);
  });
});

describe('the import of a process-compose file with an override', () => {
  it('merges them', async () => {
    put(
      'process-compose.yaml',
      'environment: [A=1, B=1]\nprocesses: { a: { command: a, namespace: x }, b: { command: b } }',
    );
    put(
      'process-compose.override.yaml',
      'environment: [B=2]\nprocesses: { a: { command: other }, c: { command: c } }',
    );
    const { services: found, notes } = await imported('process-compose.yaml');
    const env = new Map([
      ['A', '1'],
      ['B', '2'],
    ]);
    expect(found.map((one) => [one.name, one.cmd, one.group, one.env])).toEqual([
      ['a', 'other', 'x', env],
      ['b', 'b', undefined, env],
      ['c', 'c', undefined, env],
    ]);
    expect(notes).toEqual([]);
  });

  it('reads a file of another name alone', async () => {
    put('process-compose.dev.yaml', 'processes: { a: { command: a } }');
    put('process-compose.override.yaml', 'processes: { b: { command: b } }');
    expect(await services('process-compose.dev.yaml')).toEqual([['a', 'a', null]]);
  });
});
