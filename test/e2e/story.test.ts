// The first hour of somebody with two projects, by what README says alone: Vite, Node, Postgres and a migration in
// one, a Procfile with Python, Redis and Node in the other, both with a `web` and an `api`.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, folder, type Ran } from '../cli/berth_process.ts';
import { eventually } from '../kit/eventually.ts';
import { SERVICE_PORTS } from '../kit/free_ports.ts';
import { must } from '../kit/must.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const POSTGRES = '/usr/lib/postgresql';
const postgres = existsSync(POSTGRES)
  ? readdirSync(POSTGRES).map((version) => join(POSTGRES, version, 'bin'))[0]
  : undefined;
const missing = [
  ...(postgres ? [] : ['postgresql']),
  ...(existsSync('/usr/bin/redis-server') ? [] : ['redis-server']),
];
const isRoot = process.getuid?.() === 0;
/** Postgres refuses to run as root. */
const asUser = isRoot ? 'setpriv --reuid=65534 --clear-groups ' : '';

const SHOP = {
  'berth.yaml': `hooks:
  create: ${asUser}initdb -D data -U app -A trust
services:
  db:
    cmd: exec ${asUser}postgres -D data -p $PORT -k $PWD/data -h 127.0.0.1
    port: auto
    ready: { exec: psql -h 127.0.0.1 -p $PORT -U app -Atqc 'select 1' postgres }
    stop: { signal: SIGINT }
  migrate:
    kind: task
    cmd: psql -h 127.0.0.1 -p $PORT_DB -U app -Atqc "create table item (name text); insert into item values ('tea')" postgres
    depends_on: [db]
  api:
    cmd: exec node --watch api.mjs
    port: auto
    ready: /
    depends_on: [migrate]
  web:
    cmd: exec node_modules/.bin/vite --port $PORT --strictPort --host 127.0.0.1
    port: auto
    ready: /
    depends_on: [api]
`,
  'api.mjs': `import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
console.log(JSON.stringify({ level: 'warn', msg: 'no cache for profile ' + (process.env.AWS_PROFILE ?? 'none') }));
const psql = ['-h', '127.0.0.1', '-p', process.env.PORT_DB, '-U', 'app', '-Atqc', 'select name from item', 'postgres'];
createServer((request, response) => response.end(execFileSync('psql', psql))).listen(process.env.PORT, '127.0.0.1');
`,
  'index.html': '<!doctype html><title>shop</title><script type="module" src="/main.js"></script>',
  'main.js': 'document.title = "open";',
  // The packages are those of this repository: nothing is written there.
  'vite.config.mjs': 'export default { cacheDir: ".vite", clearScreen: false };',
};

const BLOG = {
  Procfile: `web: exec python3 -m http.server $PORT --bind 127.0.0.1
cache: exec redis-server --port $PORT --save "" --bind 127.0.0.1
api: exec node --watch api.mjs
lint: exec linter
`,
  'api.mjs': `import { createServer } from 'node:http';
console.log('profile', process.env.AWS_PROFILE ?? 'none');
createServer((request, response) => response.end('one')).listen(process.env.PORT, '127.0.0.1');
`,
  'post.html': 'hello',
};

function makeProject(home: string, name: string, files: Record<string, string>): string {
  const path = join(home, name);
  mkdirSync(path);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}

/** Two projects, each with a shell of its own environment, and no daemon yet. */
function twoProjects() {
  const home = folder();
  const config = join(home, 'config.toml');
  writeFileSync(config, `port = 0\n[gateway]\nport = 0\n${SERVICE_PORTS}`);
  const shop = makeProject(home, 'shop', SHOP);
  symlinkSync(join(ROOT, 'node_modules'), join(shop, 'node_modules'));
  if (isRoot) {
    chmodSync(home, 0o755);
    chmodSync(shop, 0o777);
  }
  const blog = makeProject(home, 'blog', BLOG);
  const venv = join(home, 'venv');
  mkdirSync(venv);
  writeFileSync(join(venv, 'linter'), '#!/bin/sh\necho no faults; exec sleep 1000\n', { mode: 0o755 });
  const shell =
    (cwd: string, more: Record<string, string>) =>
    (line: string): Promise<Ran> =>
      berth(line.split(' '), { cwd, env: cleanEnv(home, { BERTH_CONFIG: config, ...more }) });
  return {
    blog,
    inShop: shell(shop, { PATH: `${postgres}:${process.env['PATH']}`, AWS_PROFILE: 'of-the-shop' }),
    inBlog: shell(blog, { PATH: `${venv}:${process.env['PATH']}` }),
  };
}

const body = async (run: (line: string) => Promise<Ran>, name: string, path = ''): Promise<string> =>
  (await fetch(`${(await run(`url ${name}`)).stdout.trim()}${path}`)).text();
const note = missing.length === 0 ? '' : ` (skipped: no ${missing.join(', ')})`;

it.skipIf(missing.length > 0)(
  `two projects run next to each other, and report what they do${note}`,
  async () => {
    const { blog, inShop, inBlog } = twoProjects();
    try {
      // The database is made by the hook, filled once, and there before who needs it. All of it starts a daemon.
      const up = await inShop('up');
      expect([up.code, up.stderr]).toEqual([0, expect.stringContaining('The hook create of shop has run')]);
      expect(up.stdout).toMatch(/✓ migrate has completed/);
      expect(up.stdout.match(/✓ (api|web) is running at http:\/\/localhost:\d+ /g)).toHaveLength(2);
      expect(up.stdout).toMatch(/✓ db is running at tcp:\/\/localhost:\d+ /);
      expect(await body(inShop, 'api')).toBe('tea\n');
      expect(await body(inShop, 'web')).toContain('/@vite/client');
      expect((await inShop('up')).stderr).toBe('Everything is up to date.\n');

      // The other project has the same names, another shell, and a Procfile.
      const other = await inBlog('up');
      expect(other.code, other.stderr).toBe(0);
      expect(other.stderr).toContain('Using Procfile');
      expect(other.stdout).toMatch(/✓ lint started \(no ready-check\), pid \d+/);
      expect(await body(inBlog, 'web', '/post.html')).toBe('hello');
      const cache = (await inBlog('url cache')).stdout.trim();
      expect([cache, (await inBlog('ps')).stdout]).toEqual([
        expect.stringMatching(/^tcp:\/\/localhost:\d+$/),
        expect.stringContaining(cache),
      ]);
      expect((await inBlog('open cache --print')).stderr).toContain('cache speaks no HTTP');
      const port = must(new URL(cache).port);
      const pong = execFileSync('redis-cli', ['-h', '127.0.0.1', '-p', port, 'ping'], { encoding: 'utf8' });
      expect(pong).toBe('PONG\n');
      expect((await inBlog('logs lint')).stdout).toBe('no faults\n');
      expect((await inBlog('logs api')).stdout).toBe('profile none\n');
      expect((await inShop('logs api --level warn')).stdout).toContain('no cache for profile of-the-shop');
      expect((await inBlog('ps -q')).stdout.trim().split('\n')).toEqual(['api', 'cache', 'lint', 'web']);
      expect((await inBlog('ps -A -q')).stdout).toContain('shop--migrate');

      // A change of a file reaches the server, and one that breaks it is said.
      writeFileSync(join(blog, 'api.mjs'), BLOG['api.mjs'].replace("'one'", "'two'"));
      await eventually(async () => (await body(inBlog, 'api').catch(() => '')) === 'two');
      writeFileSync(join(blog, 'late.mjs'), 'setTimeout(() => { throw new Error("no database") }, 500);');
      writeFileSync(join(blog, 'Procfile'), `${BLOG.Procfile}late: exec node late.mjs\n`);
      const broken = await inBlog('up');
      expect(broken.code).not.toBe(0);
      expect(broken.stderr).toMatch(/✗ late: ended within .* \(exit 1\)[\s\S]*no database/);
      expect((await inBlog('status late')).stdout).toContain('no database');

      // The words that people type.
      for (const line of ['list', 'ps -a', '-v', 'help up', 'up --dry-run', 'validate', 'daemon status'])
        expect([line, (await inBlog(line)).code]).toEqual([line, 0]);
      const unknown = await inBlog('start zz');
      expect([unknown.code, unknown.stderr]).toEqual([1, expect.not.stringContaining('GET /v1')]);
      expect((await inBlog('run -s web -- printenv PORT')).stdout).toMatch(/^\d+\s*$/);

      // Down in one leaves the other as it is.
      expect((await inBlog('down')).code).toBe(0);
      expect(await body(inShop, 'api')).toBe('tea\n');
    } finally {
      await inShop('daemon stop');
    }
  },
);
