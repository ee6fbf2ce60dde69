import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { open } from 'lmdb';
import { beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { StoreFile } from '../../../src/adapters/storage/store_file.ts';
import { pagesOfCommit } from '../../../src/adapters/storage/store_room.ts';
import type { EncodedRow, Store } from '../../../src/adapters/storage/store_tables.ts';
import type { StoredService } from '../../../src/protocol/service.ts';
import { encodeMsgpack } from '../../../src/runtime/msgpack.ts';
import { afterThisTest, settle, tempDir } from '../../kit/actors.ts';
import { bundle } from '../../kit/bundle.ts';
import { canMount, hasStrace, onSmallDisk, run } from '../../kit/child_program.ts';
import { spec } from '../../kit/service_inputs.ts';

let child = '';
beforeAll(async () => {
  child = await bundle('test/adapters/storage/store_child.ts');
});

function opened(path: string): Store {
  const store = openStore(path);
  afterThisTest(() => store.close());
  return store;
}

const service = (name: string): StoredService => ({
  spec: spec({ name, env: [['__proto__', 'x']] }),
  revision: 1,
});

/** Transactions so far, by lmdb's count. */
async function commits(path: string): Promise<number> {
  const env = open({ path, noSubdir: true, readOnly: true });
  const { lastTxnId } = env.getStats() as { lastTxnId: number };
  await env.close();
  return lastTxnId;
}

describe('the store', () => {
  it('returns what was put, in key order, also after reopening', async () => {
    const path = join(tempDir(), 'store.mdb');
    const store = openStore(path);
    const services = store.table('services');
    await Promise.all(['web', 'api', 'db'].map((name) => services.put(name, service(name))));
    await services.remove('db');
    expect(services.get('web')).toEqual(service('web'));
    expect(services.get('db')).toBeUndefined();
    await store.close();
    expect(opened(path).table('services').all()).toEqual([
      ['api', service('api')],
      ['web', service('web')],
    ]);
  });

  it('keeps the value as it was when put was called', async () => {
    const keys = opened(join(tempDir(), 'store.mdb')).table('keys');
    const bytes = Buffer.from('before');
    const put = keys.put('key', bytes);
    bytes.write('after!');
    encodeMsgpack('something else in the pool of the encoder');
    await put;
    expect(Buffer.from(keys.get('key') ?? []).toString()).toBe('before');
  });

  it('makes its files readable by the owner alone, whatever the umask', async () => {
    const folder = tempDir();
    const before = process.umask(0);
    try {
      opened(join(folder, 'store.mdb'));
    } finally {
      process.umask(before);
    }
    const modes = readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600]);
  });

  it('removes the rights of others from a file that they can read', async () => {
    const path = join(tempDir(), 'store.mdb');
    await openStore(path).close();
    for (const file of [path, `${path}-lock`]) chmodSync(file, 0o644);
    opened(path);
    for (const file of [path, `${path}-lock`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('sets a damaged row aside, drops it, and reads the others', async () => {
    const path = join(tempDir(), 'store.mdb');
    const store = openStore(path);
    for (const name of ['api', 'web']) await store.table('services').put(name, service(name));
    await store.close();
    const bytes = readFileSync(path);
    // One bit of the row of `web`, in every page that has a version of it.
    for (let at = bytes.indexOf('"name":"web"'); at >= 0; at = bytes.indexOf('"name":"web"', at + 1))
      bytes[at + 9] = (bytes[at + 9] ?? 0) ^ 4;
    writeFileSync(path, bytes);
    const aside: string[] = [];
    const onDamaged = ({ table, key }: EncodedRow, reason: string): boolean => {
      aside.push(`${table} ${key}: ${reason}`);
      return true;
    };
    const damaged = openStore(path, { onDamaged });
    expect(damaged.table('services').all()).toEqual([['api', service('api')]]);
    expect(aside).toEqual(['services web: its checksum does not fit']);
    await damaged.close();
    expect([...opened(path).rows()].map(({ key }) => key)).toEqual(['api']);
  });

  it.each([
    ['removed', (path: string) => rmSync(path)],
    ['moved', (path: string) => renameSync(path, `${path}.elsewhere`)],
    [
      'replaced',
      (path: string) => {
        copyFileSync(path, `${path}.copy`);
        renameSync(`${path}.copy`, path);
      },
    ],
  ])(
    'acknowledges no change once its file is %s, reports that once, and can still be read',
    async (_, lose) => {
      const path = join(tempDir(), 'store.mdb');
      let lost = 0;
      const store = openStore(path, {
        onLost: () => {
          lost += 1;
        },
      });
      afterThisTest(() => store.close());
      await store.table('services').put('web', service('web'));
      lose(path);
      await expect(store.table('services').put('api', service('api'))).rejects.toMatchObject({
        code: 'storage_lost',
      });
      expect(lost).toBe(1);
      expect(store.table('services').all()).toEqual([['web', service('web')]]);
    },
  );

  it('never writes more pages after the last one than it has preallocated', async () => {
    const path = join(tempDir(), 'store.mdb');
    const store = opened(path);
    const keys = store.table('keys');
    const fd = openSync(path, 'r');
    afterThisTest(() => closeSync(fd));
    const file = new StoreFile(path, fd);
    const change = fc.record({ key: fc.nat(300), bytes: fc.option(fc.nat(9_000)) });
    const batches = fc.array(fc.array(change, { minLength: 1, maxLength: 150 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(batches, async (all) => {
        for (const batch of all) {
          const before = file.usedPages();
          const bytes = batch.reduce((sum, row) => sum + (row.bytes ?? 0) + 16, 0);
          const size = { changes: batch.length, bytes, isEssential: false };
          await Promise.all(
            batch.map(({ key, bytes }) =>
              bytes === null ? keys.remove(`k${key}`) : keys.put(`k${key}`, Buffer.alloc(bytes)),
            ),
          );
          expect(file.usedPages() - before).toBeLessThanOrEqual(pagesOfCommit(size, before, 4096));
          expect(file.spareBytes()).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: Number(process.env['BERTH_TEST_RUNS'] ?? 15) },
    );
  });

  it('commits in groups: 500 puts at once take a few transactions', async () => {
    const path = join(tempDir(), 'store.mdb');
    const store = openStore(path);
    const ends = store.table('keys');
    const before = await commits(path);
    await Promise.all(Array.from({ length: 500 }, (_, n) => ends.put(`k${n}`, Buffer.alloc(500))));
    await store.close();
    expect((await commits(path)) - before).toBeLessThanOrEqual(4);
  });

  it('has every acknowledged row after kill -9', async () => {
    const path = join(tempDir(), 'store.mdb');
    let acknowledged: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      const program = run(process.execPath, [child, 'forever', path]);
      await program.line(() => program.lines.length > 400);
      program.child.kill('SIGKILL');
      expect(await program.exited).toMatchObject({ signal: 'SIGKILL' });
      acknowledged = [...acknowledged, ...program.lines];
      const store = openStore(path);
      const rows = new Map(store.table('keys').all());
      for (const key of acknowledged) {
        expect(Buffer.from(rows.get(key) ?? []).toString(), key).toBe(key.repeat(50));
      }
      await store.close();
    }
  });

  it('is shared by threads, and a terminated thread harms no other', async () => {
    const path = join(tempDir(), 'store.mdb');
    const keys = opened(path).table('keys');
    const thread = async (name: string, close: boolean): Promise<void> => {
      const worker = new Worker(child, { workerData: { path, thread: name, count: 100, close } });
      await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject));
      await worker.terminate();
    };
    await Promise.all([thread('a', true), thread('b', false), thread('c', true)]);
    await thread('d', false);
    await keys.put('main-0', Buffer.from('main-0'));
    const found = keys.all().filter(([key]) => !key.startsWith('late-'));
    expect(found).toHaveLength(401);
    expect(found.every(([key, value]) => Buffer.from(value).toString() === key)).toBe(true);
  });

  it("can be opened at any moment of another thread's commits", async () => {
    const folder = tempDir();
    const paths = Array.from({ length: 40 }, (_, n) => join(folder, `${n}.mdb`));
    const worker = new Worker(child, { workerData: { paths } });
    let at = '';
    worker.on('message', (path) => {
      at = path;
    });
    afterThisTest(async () => void (await worker.terminate()));
    const ended = new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject));
    let isOver = false;
    void ended.finally(() => {
      isOver = true;
    });
    let met = 0;
    while (!isOver) {
      if (at) {
        const store = openStore(at);
        const before = store.version();
        await store.close();
        // The other thread has not made its last commit yet.
        if (before < (await commits(at))) met += 1;
      }
      await settle();
    }
    await ended;
    expect(met).toBeGreaterThan(0);
  });

  it.runIf(canMount())(
    'fails with storage_full on a full disk, makes all changes of a turn or none, and continues',
    async () => {
      const [command, args] = onSmallDisk('1m', `exec ${process.execPath} ${child} full /mnt/store.mdb`);
      const program = run(command, args);
      expect(await program.exited).toEqual({ code: 0, signal: null });
      expect(program.lines).toEqual([
        'first storage_full',
        'second storage_full',
        'rows true',
        'end stored',
        'small 1 of true',
        'closed',
      ]);
    },
  );

  it.runIf(canMount() && hasStrace())('never lets LMDB run into a full disk', async () => {
    const folder = tempDir();
    const program = `${process.execPath} ${child} full /mnt/store.mdb`;
    // A file for each thread, so that every call is one line.
    const strace = `strace -ff -v -s 0 -o ${join(folder, 'trace')} -e trace=write,writev,pwrite64,pwritev`;
    const [command, args] = onSmallDisk('1m', `exec ${strace} ${program}`);
    expect(await run(command, args).exited).toEqual({ code: 0, signal: null });
    const calls = readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'));
    const full = calls.filter((line) => line.includes('ENOSPC'));
    // Zeros are appended by write; lmdb writes its pages at their positions.
    expect(full.length).toBeGreaterThan(0);
    expect(full.filter((line) => !line.startsWith('write('))).toEqual([]);
    // Pages for which there is room in part only are written in part.
    const isInPart = (line: string): boolean => {
      const lengths = [...line.matchAll(/iov_len=(\d+)|, (\d+), \d+\) /g)].map(([, one, all]) =>
        Number(one ?? all),
      );
      return !line.endsWith(` = ${lengths.reduce((sum, length) => sum + length, 0)}`);
    };
    const pages = calls.filter((line) => /^(writev|pwrite)/.test(line));
    expect(pages.length).toBeGreaterThan(0);
    expect(pages.filter(isInPart)).toEqual([]);
  });

  describe('refuses at open, naming the file,', () => {
    const refused = (path: string): string => {
      // In its own process: lmdb would end this one with a segmentation fault.
      const { status, stderr, signal } = spawnSync(process.execPath, [child, 'open', path], {
        encoding: 'utf8',
      });
      expect(signal).toBeNull();
      expect(status).not.toBe(0);
      expect(stderr).toContain(path);
      return stderr;
    };

    it.each([
      ['text', Buffer.from('hello, this is no store')],
      ['zeros', Buffer.alloc(20_000)],
      ['rubbish of a store’s size', Buffer.alloc(40_960, 'rubbish')],
    ])('%s', (_, bytes) => {
      const path = join(tempDir(), 'store.mdb');
      writeFileSync(path, bytes);
      expect(refused(path)).toContain('damaged');
      expect(readFileSync(path).equals(bytes)).toBe(true);
    });

    it('a truncated store', async () => {
      const path = join(tempDir(), 'store.mdb');
      const store = openStore(path);
      await store.table('services').put('web', service('web'));
      await store.close();
      truncateSync(path, 9_000);
      expect(refused(path)).toContain('damaged');
    });

    it.each([
      ['a folder', (path: string) => mkdirSync(path)],
      ['a FIFO', (path: string) => spawnSync('mkfifo', [path])],
      ['a link to a device', (path: string) => symlinkSync('/dev/zero', path)],
    ])('%s', (_, make) => {
      const path = join(tempDir(), 'store.mdb');
      make(path);
      expect(refused(path)).toContain('is no regular file');
    });

    it('a link to a file of others, whose mode stays as it is', () => {
      const folder = tempDir();
      const theirs = join(folder, 'theirs');
      writeFileSync(theirs, 'x'.repeat(40_960), { mode: 0o644 });
      symlinkSync(theirs, join(folder, 'store.mdb'));
      expect(refused(join(folder, 'store.mdb'))).toContain('damaged');
      expect(statSync(theirs).mode & 0o777).toBe(0o644);
    });

    it('a store of another user', async () => {
      const path = join(tempDir(), 'store.mdb');
      const other = open({ path, noSubdir: true });
      await other.openDB({ name: 'theirs' }).put('a', 1);
      await other.close();
      expect(refused(path)).toContain('no store of berth');
    });

    it('a store of a newer version', async () => {
      const path = join(tempDir(), 'store.mdb');
      const store = openStore(path);
      await store.table('meta').put('format', 4);
      await store.close();
      expect(refused(path)).toContain('has format 4');
    });
  });
});
