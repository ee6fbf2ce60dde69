// docs/reference.md "Resource limits", "Environment of a process", in virtual time.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempDir } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { running, supervise } from '../../kit/service.ts';

it('a run over its memory limit is ended with that cause, and the policy restarts it', async () => {
  const world = await supervise({ spec: { limits: { memoryMB: 64 }, restart: 'on-failure' } });
  await world.begin();
  await running(world);
  const run = must(world.host.row).run;
  await world.ref.ask('overMemory', { run, rssMB: 65 });
  await world.advance(50);
  expect(world.events()).toContainEqual([
    'service.crashed',
    { name: 'web', exitCode: null, signal: 'SIGTERM', cause: 'memory' },
  ]);
  await world.advance(500);
  expect(world.host.made).toHaveLength(2);
});

it('statistics of an earlier run end nothing', async () => {
  const world = await supervise({ spec: { limits: { memoryMB: 64 } } });
  await world.begin();
  await running(world);
  await world.ref.ask('overMemory', { run: '00000000000000aa', rssMB: 65 });
  await world.advance(50);
  expect(world.host.stops).toEqual([]);
});

it('the byte order mark of an envFile is no part of the first name', async () => {
  const file = join(tempDir(), 'berth.env');
  writeFileSync(file, '\uFEFFFIRST=1\nSECOND=2\n');
  const world = await supervise({ spec: { envFile: [file] } });
  await world.begin();
  await running(world);
  expect(must(world.host.spawns[0]).env).toEqual(
    expect.arrayContaining([
      ['FIRST', '1'],
      ['SECOND', '2'],
    ]),
  );
});

it('an envFile may refer to its earlier lines, earlier files and the base environment', async () => {
  const folder = tempDir();
  writeFileSync(join(folder, 'a.env'), 'A=pa#ss\nB="$A:$HOME"\n');
  writeFileSync(join(folder, 'b.env'), "C=${B}$D\nD='$A'\n");
  const world = await supervise({ spec: { cwd: folder, envFile: ['a.env', 'b.env'] } });
  await world.begin();
  await running(world);
  expect(must(world.host.spawns[0]).env).toEqual(
    expect.arrayContaining([
      ['A', 'pa#ss'],
      ['B', 'pa#ss:/home/u'],
      ['C', 'pa#ss:/home/u$D'],
      ['D', '$A'],
    ]),
  );
});

it.each([
  ['/nowhere/berth.env', 'does not exist'],
  ['/dev/zero', '/dev/zero'],
  [process.execPath, 'larger than'],
  ['/bin/true', 'is not UTF-8'],
])('a start with %j as envFile fails and spawns no process', async (file, reason) => {
  const world = await supervise({ spec: { envFile: [file] } });
  await world.begin();
  const start = world.ref.ask('start', { timeoutMs: null, wait: true });
  await expect(start).rejects.toMatchObject({
    code: 'start_failed',
    message: expect.stringContaining(reason),
  });
  expect(world.host.made).toEqual([]);
});

it('a start in a stack reads no record of another service, as opening all environments takes long', async () => {
  const world = await supervise({ spec: { stack: 'shop', cmd: 'serve ${url.db}' } });
  world.ports.claims = [{ name: 'shop--db', port: 5432, protocol: 'tcp' }];
  await world.begin();
  await running(world);
  expect(must(world.host.spawns[0])).toMatchObject({
    cmd: 'serve tcp://localhost:5432',
    env: expect.arrayContaining([['URL_DB', 'tcp://localhost:5432']]),
  });
  expect(world.store.read).toContain('services/web');
  // Only whether its hook is there.
  expect(world.store.read.filter((row) => /^services\/(?!web$)/.test(row))).toEqual([
    'services/shop--hook-create',
  ]);
});
