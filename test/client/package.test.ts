// The package as its users get it: types that reject misuse, and a browser build that needs nothing of Node.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const tsc = (cwd: string, ...args: string[]) =>
  spawnSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...args], {
    cwd,
    encoding: 'utf8',
  });

it('comes with types', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-package-'));
  folders.push(folder);
  const installed = join(folder, 'node_modules/berth');
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
  cpSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'), {
    recursive: true,
  });
  cpSync(join(ROOT, 'node_modules/undici-types'), join(folder, 'node_modules/undici-types'), {
    recursive: true,
  });
  // The client's types name zod, on which the package depends.
  cpSync(join(ROOT, 'node_modules/zod'), join(folder, 'node_modules/zod'), { recursive: true });
  mkdirSync(installed, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  const made = tsc(ROOT, '-p', 'src/client', '--outDir', join(installed, 'dist/types'));
  expect([made.status, made.stdout]).toEqual([0, '']);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(
    join(folder, 'user.ts'),
    `import { connectLocal, type Service } from 'berth/client';
const berth = await connectLocal();
const all: Service[] = await berth.services();
for await (const event of berth.events()) if (event.type === 'service.crashed') console.log(event.data.exitCode, all);
const wrong: number = await berth.services();
await berth.start('web', { timeout: '30s' });
`,
  );
  const checked = tsc(
    folder,
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
    'user.ts',
  );
  const errors = checked.stdout.split('\n').filter((line) => line.includes('error TS'));
  expect(errors.map((line) => line.split(':')[0])).toEqual(['user.ts(5,7)', 'user.ts(6,28)']);
});

it('has a browser build that loads without Node', async () => {
  const { readFileSync } = await import('node:fs');
  const text = readFileSync(join(ROOT, 'dist/client-browser.js'), 'utf8');
  expect(text).not.toMatch(/node:|require\(|getBuiltinModule/);
  const { connect } = await import(join(ROOT, 'dist/client-browser.js'));
  expect(Object.keys(connect({ url: 'http://localhost' }))).toContain('events');
});
