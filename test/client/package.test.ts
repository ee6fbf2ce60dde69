// The client's package as its users get it: types that reject misuse and need no other package, and a browser
// build that needs nothing of Node.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const BUILT = join(ROOT, 'dist/client-package');
const NAME = '@berth-dev/client';

/** A project whose only package is the client. */
let project: string;
beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'berth-package-'));
  const installed = join(project, 'node_modules', NAME);
  mkdirSync(join(project, 'node_modules/@berth-dev'), { recursive: true });
  cpSync(BUILT, installed, { recursive: true });
  // Only the build of a package has types.
  mkdirSync(join(project, 'client-package'));
  const { writeClientTypes } = await import(join(ROOT, 'src/build/client_types.mjs'));
  writeClientTypes(ROOT, project);
  cpSync(join(project, 'client-package'), installed, { recursive: true });
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** The errors in the file `name` with this text, in a strict project without the types of Node. */
function check(name: string, text: string): string[] {
  writeFileSync(join(project, name), text);
  const settings = ['--strict', '--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022'];
  const own = ['--ignoreConfig', '--noEmit', '--skipLibCheck', 'false', '--types', ''];
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, ...own, ...settings, name], {
    cwd: project,
    encoding: 'utf8',
  });
  return stdout.split('\n').filter((line) => line.includes('error TS'));
}

describe('the types of the client', () => {
  it('need no other package, and reject wrong calls', () => {
    const errors = check(
      'user.ts',
      `import { connectLocal, type Service } from '${NAME}';
const berth = await connectLocal();
const all: Service[] = await berth.services();
for await (const event of berth.events()) if (event.type === 'service.crashed') console.log(event.data.exitCode, all);
const wrong: number = await berth.services();
await berth.start('web', { timeout: '30s' });
for (const { state } of await berth.cloud.workloads({ cluster: 'id' })) if (state === 'asleep') break;
`,
    );
    expect(errors.map((line) => line.split(':')[0])).toEqual(['user.ts(5,7)', 'user.ts(6,28)']);
  });

  it('omit in browsers what needs Node', () => {
    const errors = check(
      'page.ts',
      `import { connect, connectLocal } from '${NAME}/browser';\nconnect({ url: '/' });\n`,
    );
    expect(errors).toEqual([expect.stringContaining('connectLocal')]);
  });
});

describe('the client', () => {
  it('uses nothing of Node in browsers', async () => {
    const text = readFileSync(join(BUILT, 'browser.js'), 'utf8');
    expect(text).not.toMatch(/node:|require\(|getBuiltinModule/);
    const { connect } = await import(join(BUILT, 'browser.js'));
    expect(Object.keys(connect({ url: 'http://localhost' }))).toContain('events');
  });

  it('has no dependencies and no native code, and can be loaded alone', () => {
    const manifest = JSON.parse(readFileSync(join(BUILT, 'package.json'), 'utf8'));
    expect([manifest.name, manifest.dependencies, manifest.scripts]).toEqual([NAME, undefined, undefined]);
    const files = readdirSync(BUILT, { recursive: true, encoding: 'utf8' });
    expect(files.filter((name) => name.endsWith('.node'))).toEqual([]);
    const script = `import { connect, connectLocal } from '${NAME}';
await connectLocal({ env: {}, stateDir: '/nonexistent' }).then((berth) => berth.version()).catch(({ code }) => console.log(code));
await connect({ url: 'http://127.0.0.1:1' }).attach('bot', { onOutput() {} }).catch(({ code }) => console.log(code));`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: project,
      encoding: 'utf8',
    });
    expect([stdout, stderr]).toEqual(['unreachable\nunreachable\n', '']);
  });

  it('is also exported by the package of the program', () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const files: string[] = JSON.stringify(exports['./client']).match(/\.\/[^"]+/g) ?? [];
    expect(files.map((path) => path.replace('./dist/client-package/', '')).sort()).toEqual([
      'browser.d.ts',
      'browser.js',
      'index.d.ts',
      'index.js',
    ]);
  });
});
