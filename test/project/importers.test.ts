// The results of importing files of other tools; each is read back as a project file.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { escapeInterpolation, stringifyProject, toServiceName } from '../../src/project/imported_project.ts';
import { importableFiles, importProject } from '../../src/project/importers.ts';
import { interpolate } from '../../src/project/interpolate.ts';
import { parseProject } from '../../src/project/read_project.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-import-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (name: string, text: string): string => {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
};

/**
 * Imports, writes and reads back: services without the fields that only say where they are, and the notes.
 */
const through = async (name: string, text: string, env: Record<string, string> = {}) => {
  const imported = await importProject(put(name, text));
  if (!imported) throw new Error(`${name} is not imported`);
  const written = stringifyProject(imported.services, ['# head']);
  expect(written.startsWith('# head\nservices:\n')).toBe(true);
  const { services } = await parseProject(written, join(folder, 'berth.yaml'), env);
  return { services: services.map(({ at: _at, ...service }) => service), notes: imported.notes };
};

it('a Procfile is read', async () => {
  put('.env', 'A=1\n');
  const { services, notes } = await through(
    'Procfile',
    '# all\nweb: bundle exec puma -p ${PORT:-3000} # $$ $HOME\n\nWorker_1:   rake jobs\nweb: second\nrelease: migrate\nnonsense\n',
  );
  expect(services).toMatchObject([
    {
      name: 'web',
      cmd: 'bundle exec puma -p ${PORT:-3000} # $$ $HOME',
      port: 'auto',
      cwd: folder,
      env: [['A', '1']],
    },
    { name: 'worker_1', cmd: 'rake jobs', port: null },
    { name: 'web-2', cmd: 'second', port: 'auto' },
  ]);
  expect(notes).toEqual([
    'release is run once before a deployment: not a service',
    'line 7 is no `name: command`',
    'worker_1: a worker by its name, without $PORT; `port: auto` gives it one',
  ]);
});

it('a Procfile process gets a port, unless it is a worker', async () => {
  const procfile = {
    web: 'bin/rails server',
    api: 'node --watch api.mjs',
    workers: './workers',
    mailworker: './mails',
    'mail-worker': './mails',
    worker_2: 'exec python3 work.py --port 7000',
    clock: 'bundle exec clockwork clock.rb',
    mails: 'bundle exec sidekiq -q mails',
    celery: 'celery -A shop worker --loglevel=info',
    css: 'bin/rails tailwindcss:watch',
    js: 'yarn build --watch',
    types: 'npx tsc -p . -w',
    assets: 'npx esbuild src/*.ts --bundle --watch --serve',
  };
  const lines = Object.entries(procfile).map(([name, cmd]) => `${name}: ${cmd}`);
  const { services, notes } = await through('Procfile', lines.join('\n'));
  expect(Object.fromEntries(services.map(({ name, port }) => [name, port]))).toEqual({
    ...{ web: 'auto', api: 'auto', workers: null, mailworker: 'auto', 'mail-worker': null, worker_2: 7000 },
    ...{ clock: null, mails: null, celery: null, css: null, js: null, types: null, assets: 'auto' },
  });
  // Names may mislead, and programs do not.
  expect(notes).toEqual([
    'workers, mail-worker, clock: a worker by its name, without $PORT; `port: auto` gives it one',
  ]);
});

it('PORT in the .env of a Procfile overrides the port of no process', async () => {
  put('.env', 'PORT=5000\nA=1\n');
  const { services, notes } = await through('Procfile', 'web: puma\nApi: node .\njobs: sidekiq\n');
  const port = (name: string): [string, string] => ['PORT', `\${port.${name}}`];
  expect(services.map(({ name, env }) => [name, env.toSorted()])).toEqual([
    ['web', [['A', '1'], port('web')]],
    ['api', [['A', '1'], port('api')]],
    [
      'jobs',
      [
        ['A', '1'],
        ['PORT', '5000'],
      ],
    ],
  ]);
  expect(notes).toEqual([
    'PORT in .env is overridden: each process has its own port, which `port: 5000` can set',
  ]);
});

it('a process-compose process gets the .env beside the file, without its PORT if it has a port', async () => {
  put('.env', 'PORT=5000\nA=1\nB=1\n');
  const text = `
environment: [B=2]
processes:
  plain: { command: run }
  api: { command: "api --port 4000" }
  own: { command: run, environment: [PORT=6000] }
  none: { command: run, is_dotenv_disabled: true }
  twin: { command: "run --port 7000", replicas: 2 }
`;
  const { services, notes } = await through('process-compose.yaml', text);
  expect(services.map(({ name, port, env }) => [name, port, Object.fromEntries(env)])).toEqual([
    ['plain', null, { A: '1', B: '2', PORT: '5000' }],
    ['api', 4000, { A: '1', B: '2', PORT: '${port.api}' }],
    ['own', 6000, { A: '1', B: '2', PORT: '6000' }],
    ['none', null, { B: '2' }],
    ['twin', 'auto', { A: '1', B: '2', PC_REPLICA_NUM: '0', PORT: '${port.twin}' }],
    ['twin-2', 'auto', { A: '1', B: '2', PC_REPLICA_NUM: '1', PORT: '${port.twin-2}' }],
  ]);
  expect(notes).toEqual([
    'twin: its replicas cannot share port 7000; each has a free one in $PORT, which its command has to use',
    'PORT in .env is overridden: each process has its own port, which `port: 5000` can set',
  ]);
});

it('the scripts of a package are read', async () => {
  put('pnpm-lock.yaml', '');
  const manifest = { name: '@acme/Shop', scripts: { build: 'x', start: 'node .', dev: 'vite --port 5174' } };
  const { services, notes } = await through('package.json', JSON.stringify(manifest));
  expect(services).toMatchObject([
    { name: 'shop', cmd: 'pnpm run dev', port: 5174, ready: { tcp: true }, cwd: folder },
  ]);
  expect(notes).toEqual([]);
});

it('the workspaces of a package, and those of pnpm, are read', async () => {
  put('apps/web/package.json', JSON.stringify({ name: 'web', scripts: { dev: 'next dev -p 3001' } }));
  put('apps/api/package.json', JSON.stringify({ name: 'api', scripts: { start: 'node server.js' } }));
  put('apps/lib/package.json', JSON.stringify({ name: 'lib', scripts: { build: 'tsc' } }));
  put('tools/mock/package.json', JSON.stringify({ scripts: { serve: 'PORT=4000 node .' } }));
  put('pnpm-workspace.yaml', 'packages:\n  - tools/mock\n  - "deep/**"\n');
  const manifest = { scripts: { dev: 'turbo dev' }, workspaces: ['apps/*'] };
  const { services, notes } = await through('package.json', JSON.stringify(manifest));
  expect(services.map(({ name, cmd, cwd, port }) => [name, cmd, cwd, port])).toEqual([
    ['api', 'npm run start', join(folder, 'apps/api'), 'auto'],
    ['web', 'npm run dev', join(folder, 'apps/web'), 3001],
    ['web-2', 'npm run serve', join(folder, 'tools/mock'), 4000],
  ]);
  expect(notes).toEqual([
    'the workspace pattern deep/** is not followed',
    'api: its script names no port, so it must listen on $PORT',
  ]);
});

it.each(['null', '[]', '"dev"'])('the import of the package.json %s says what is wrong', async (text) => {
  await expect(through('package.json', text)).rejects.toThrow('it must be a JSON object');
});

it('files to import are recognized by name, the best first', async () => {
  for (const name of ['package.json', 'compose.yaml', 'Procfile', 'README.md']) put(name, '{}');
  expect(importableFiles(folder)).toEqual(
    ['Procfile', 'compose.yaml', 'package.json'].map((name) => join(folder, name)),
  );
  expect(await importProject(put('README.md', ''))).toBeUndefined();
  expect(await importProject(put('Procfile.local', 'a: b'))).toMatchObject({ kind: 'Procfile' });
});

it('any text is written so that it reads back unchanged', async () => {
  for (const text of ['$', '$$', '$$$', '${X}', '$${X}', 'a $X b', '$(x) $$ ${Y:-z}', 'no dollar']) {
    expect(interpolate(escapeInterpolation(text), () => undefined)).toBe(text);
  }
});

it('names are made valid for the daemon', async () => {
  const taken = new Set<string>();
  expect(['Web App', 'web-app', '-x-', '漢', ''].map((text) => toServiceName(text, taken))).toEqual([
    'web-app',
    'web-app-2',
    'x',
    'service',
    'service-2',
  ]);
});

it('control characters are written escaped, and read back', async () => {
  const odd = 'printf "\x9b31m\u202e\x7f\x1b[0m\u2028" # ✓ 漢字';
  const written = stringifyProject(
    [{ name: 'web', cmd: odd, port: 'auto', env: new Map([['A', 'x\u2066\ny']]) }],
    [],
  );
  expect(written).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
  expect(written).toContain('✓ 漢字');
  const { services } = await parseProject(written, join(folder, 'berth.yaml'), {});
  expect(services).toMatchObject([{ name: 'web', cmd: odd }]);
  expect(JSON.stringify(services[0]?.env)).toContain('x\u2066\\ny');
});
