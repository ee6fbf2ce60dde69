// docs/reference.md "Damaged store".
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { open } from 'lmdb';
import { describe, expect, it, vi } from 'vitest';
import { openDaemonStore, openSharedStore } from '../../../src/adapters/storage/daemon_store.ts';
import { damagedRows, leftOutServices } from '../../../src/adapters/storage/damaged_rows.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { readWholeStore } from '../../../src/adapters/storage/store_check.ts';
import { readStoreCopy, StoreCopier, writeStoreCopy } from '../../../src/adapters/storage/store_copy.ts';
import { newPagesInFlight } from '../../../src/adapters/storage/store_room.ts';
import type { Store } from '../../../src/adapters/storage/store_tables.ts';
import type { StoredWorkload } from '../../../src/protocol/cloud.ts';
import type { WatchPosition } from '../../../src/protocol/cloud_watches.ts';
import type { StoredService } from '../../../src/protocol/service.ts';
import { encodeMsgpack } from '../../../src/runtime/msgpack.ts';
import { type StatePaths, statePaths } from '../../../src/settings/state_paths.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { spec } from '../../kit/service_inputs.ts';

const service = (name: string): StoredService => ({ spec: spec({ name }), revision: 1 });

/** As the daemon finds it out in another process. */
const isReadable = (path: string): Promise<boolean> =>
  readWholeStore(path).then(
    () => true,
    () => false,
  );

interface State {
  paths: StatePaths;
  log: string[];
  open(restore?: boolean): Promise<Store>;
}

function newState(): State {
  const paths = statePaths(tempDir());
  const log: string[] = [];
  const inFlight = newPagesInFlight();
  const report = (text: string): void => void log.push(text);
  return {
    paths,
    log,
    async open(restore = false) {
      const seal = (stored: StoredService): StoredService => ({ ...stored, sealedEnv: 'sealed' });
      const restoring = restore ? { isReadable } : null;
      const store = await openDaemonStore({
        paths,
        inFlight,
        report,
        restore: restoring,
        isAlone: true,
        seal,
      });
      afterThisTest(() => store.close());
      return store;
    },
  };
}

/** A state whose store and copy have `web`, and nothing open. */
async function usedState(): Promise<State> {
  const state = newState();
  const store = await state.open();
  await store.table('services').put('web', service('web'));
  await writeStoreCopy(state.paths.storeCopy, store.rows());
  await store.close();
  return state;
}

/** Puts bytes that are no row into the store at `path`. */
async function damage(path: string, table: string, key: string): Promise<void> {
  const raw = open<Uint8Array, string>({ path, noSubdir: true, encoding: 'binary', maxDbs: 32 });
  await raw.openDB<Uint8Array, string>({ name: table, encoding: 'binary' }).put(key, Buffer.from('rubbish'));
  await raw.close();
}

const names = (store: Store): string[] =>
  store
    .table('services')
    .all()
    .map(([name]) => name);

describe('a store that existed and is missing', () => {
  it.each([
    ['missing', ({ store }: StatePaths) => rmSync(store), 'is missing'],
    ['empty', ({ store }: StatePaths) => truncateSync(store), 'is empty'],
    ['truncated', ({ store }: StatePaths) => truncateSync(store, 9_000), 'damaged|truncated'],
    ['cut behind its roots', ({ store }: StatePaths) => truncateSync(store, 20_480), 'damaged|truncated'],
    ['rubbish', ({ store }: StatePaths) => writeFileSync(store, 'rubbish'.repeat(9_000)), 'is damaged'],
    [
      'a folder',
      ({ store }: StatePaths) => {
        rmSync(store);
        mkdirSync(store);
      },
      'is no regular file',
    ],
  ])('%s, is refused in one line that says how to recover', async (_, harm, why) => {
    const state = await usedState();
    harm(state.paths);
    const error = await state.open().catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'storage_lost', message: expect.stringMatching(why) });
    const { message } = error as Error;
    expect(message).toContain(state.paths.store);
    expect(message).toContain(state.paths.storeCopy);
    expect(message).toContain('berth daemon --restore-store');
    expect(message).not.toContain('\n');
    expect(names(await state.open(true))).toEqual(['web']);
    expect(state.log.join()).toMatch(/the store is the copy of \d{4}-/);
  });

  it('is refused also without a copy if events or logs exist, and begins empty on request', async () => {
    for (const make of [
      ({ logs }: StatePaths) => mkdirSync(join(logs, 'web'), { recursive: true }),
      ({ events }: StatePaths) => {
        mkdirSync(events);
        writeFileSync(join(events, 'life-1.log'), '1\n');
      },
    ]) {
      const state = newState();
      make(state.paths);
      await expect(state.open()).rejects.toMatchObject({
        code: 'storage_lost',
        message: expect.stringContaining('no copy'),
      });
      expect(names(await state.open(true))).toEqual([]);
    }
  });

  it('is created in a new state directory', async () => {
    const state = newState();
    expect(names(await state.open())).toEqual([]);
  });

  it('is not created by a second thread', () => {
    const { paths } = newState();
    expect(() => openSharedStore({ paths, inFlight: newPagesInFlight(), report: () => {} })).toThrow(
      /is missing/,
    );
    expect(existsSync(paths.store)).toBe(false);
  });

  it('has a copy of everything acknowledged, once a change has failed because it is missing', async () => {
    const state = await usedState();
    const store = await state.open();
    await store.table('services').put('api', service('api'));
    rmSync(state.paths.store);
    const change = store.table('services').put('db', service('db'));
    await expect(change).rejects.toMatchObject({ code: 'storage_lost' });
    await store.close();
    expect(state.log.join()).toContain('was removed or replaced');
    expect(names(await state.open(true))).toEqual(['api', 'web']);
  });
});

describe('a restore', () => {
  it('keeps the store that it replaces, beside those of earlier ones', async () => {
    const state = await usedState();
    for (const name of ['store.mdb.old', 'store.mdb.old.2', 'store.mdb.old.3']) {
      writeFileSync(state.paths.store, `rubbish of ${name}`.repeat(900));
      await (await state.open(true)).close();
      expect(state.log.pop()).toMatch(`what was there is now ${join(dirname(state.paths.store), name)}`);
    }
    for (const name of ['store.mdb.old', 'store.mdb.old.2', 'store.mdb.old.3'])
      expect(readFileSync(join(dirname(state.paths.store), name), 'utf8')).toMatch(`rubbish of ${name}`);
  });

  it('refuses an undamaged store, until that is moved away', async () => {
    const state = await usedState();
    const store = await state.open();
    await store.table('services').put('api', service('api'));
    await store.close();
    await writeStoreCopy(state.paths.storeCopy, []);
    await expect(state.open(true)).rejects.toMatchObject({
      message: expect.stringContaining('is undamaged, so --restore-store leaves it'),
    });
    expect(existsSync(`${state.paths.store}.old`)).toBe(false);
    const again = await state.open();
    expect(names(again)).toEqual(['api', 'web']);
    await again.close();
    await writeStoreCopy(state.paths.storeCopy, []);
    renameSync(state.paths.store, `${state.paths.store}.mine`);
    expect(names(await state.open(true))).toEqual([]);
  });

  it('names the services that the copy lacks, also if it cannot note them', async () => {
    const state = await usedState();
    mkdirSync(join(state.paths.logs, 'new'), { recursive: true });
    writeFileSync(state.paths.damaged, '');
    rmSync(state.paths.store);
    expect(names(await state.open(true))).toEqual(['web']);
    expect(state.log.slice(1)).toEqual([
      expect.stringMatching(/the store lacks these services, .*: new$/),
      expect.stringMatching(/`berth doctor` does not know what it lacks: E/),
    ]);
  });

  it('leaves out what would repeat what is over', async () => {
    const state = await usedState();
    const store = await state.open();
    const call = { verb: 'stop', step: 'stop', graceMs: null, timeoutMs: null, at: 1 } as const;
    const end = { run: 'r', exitCode: 0, signal: null, exitUnknown: false, at: 1 };
    const completed = { ...end, status: 'completed', completed: { ms: 1, content: 'c' } } as const;
    await store.table('restarts').put('site', call);
    await store.table('overrides').put('web', { group: 'site' });
    await store.table('schedules').put('job', { schedule: '{}', slot: 1, asked: null, skipped: 0 });
    await store.table('doors').put('web', { asleepAfter: null });
    await store.table('positions').put('notices', 1);
    await store.table('ends').put('web', { ...end, status: 'crashed', restart: { attempt: 1, at: 1 } });
    await store.table('ends').put('api', { ...end, status: 'stopped', relaunch: true });
    await store.table('ends').put('db', { ...end, status: 'stopped', restart: { attempt: 1, at: 1 } });
    await store.table('ends').put('job', { ...completed, unasked: true });
    await writeStoreCopy(state.paths.storeCopy, store.rows());
    await store.close();
    rmSync(state.paths.store);
    const restored = await state.open(true);
    expect(names(restored)).toEqual(['web']);
    for (const table of ['restarts', 'overrides', 'schedules', 'doors', 'positions'] as const)
      expect(restored.table(table).all()).toEqual([]);
    // No start follows these.
    expect(restored.table('ends').all()).toEqual([
      ['api', { ...end, status: 'stopped' }],
      ['db', { ...end, status: 'stopped' }],
      ['job', completed],
    ]);
  });

  it('replaces a store with a damaged row', async () => {
    const state = await usedState();
    await damage(state.paths.store, 'services', 'api');
    expect(names(await state.open(true))).toEqual(['web']);
    expect(state.log.join()).toMatch(/the store is the copy of/);
  });
});

describe('a store that is truncated while it is in use', () => {
  it('refuses changes and says so once, and is neither enlarged nor copied', async () => {
    const state = await usedState();
    const store = await state.open();
    await store.table('services').put('api', service('api'));
    const copied = readFileSync(state.paths.storeCopy);
    truncateSync(state.paths.store, 4096);
    for (const name of ['db', 'web']) {
      const change = store.table('services').put(name, service(name));
      await expect(change).rejects.toMatchObject({
        code: 'storage_lost',
        message: expect.stringContaining('was truncated while the daemon runs'),
      });
    }
    await store.close();
    expect(statSync(state.paths.store).size).toBe(4096);
    expect(readFileSync(state.paths.storeCopy)).toEqual(copied);
    expect(state.log.filter((line) => line.includes('was truncated'))).toHaveLength(1);
    expect(names(await state.open(true))).toEqual(['web']);
  });
});

describe('the copy of the store', () => {
  it('is complete or absent', async () => {
    const state = await usedState();
    const { storeCopy } = state.paths;
    const whole = readFileSync(storeCopy);
    for (const length of [0, 1, 10, whole.length - 9, whole.length - 1]) {
      writeFileSync(storeCopy, whole.subarray(0, length));
      expect(() => readStoreCopy(storeCopy)).toThrow(/is damaged/);
    }
    const flipped = Buffer.from(whole);
    flipped[20] = (flipped[20] ?? 0) ^ 1;
    writeFileSync(storeCopy, flipped);
    expect(() => readStoreCopy(storeCopy)).toThrow(/is damaged/);
  });

  it('of many rows is complete', async () => {
    const state = newState();
    const store = await state.open();
    const keys = Array.from({ length: 1_203 }, (_, n) => `k${String(n).padStart(4, '0')}`);
    await Promise.all(keys.map((key) => store.table('keys').put(key, Buffer.from(key))));
    await writeStoreCopy(state.paths.storeCopy, store.rows());
    expect(readStoreCopy(state.paths.storeCopy).map(({ key }) => key)).toEqual(keys);
  });

  it('is written again only after a change', async () => {
    const state = await usedState();
    const store = await state.open();
    const copier = new StoreCopier(store, state.paths.storeCopy, () => {});
    afterThisTest(() => copier.close());
    await copier.copy();
    rmSync(state.paths.storeCopy);
    await copier.copy();
    expect(existsSync(state.paths.storeCopy)).toBe(false);
    await store.table('services').put('api', service('api'));
    await copier.copy();
    expect(readStoreCopy(state.paths.storeCopy).map(({ key }) => key)).toEqual(['api', 'web']);
  });

  it.each([
    ['a small one 10 s after a start', 1_000, 0, 10_000],
    ['a large one an hour after the last', 9_000_000, 600_000, 3_000_000],
    ['a large one from before at once', 9_000_000, 7_200_000, 10_000],
    ['a large one from the future an hour after the start', 9_000_000, -7_200_000, 3_600_000],
  ])('is written: %s', async (_, bytes, ageMs, pauseMs) => {
    const state = await usedState();
    const store = await state.open();
    const path = join(tempDir(), 'copy');
    writeFileSync(path, '');
    truncateSync(path, bytes);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    afterThisTest(() => void vi.useRealTimers());
    const time = (Date.now() - ageMs) / 1_000;
    utimesSync(path, time, time);
    const copier = new StoreCopier(store, path, () => {});
    const copy = vi.spyOn(copier, 'copy');
    // The file system rounds the time of a file.
    await vi.advanceTimersByTimeAsync(pauseMs - 10);
    expect(copy).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(20);
    await copier.close();
    expect(readStoreCopy(path).map(({ key }) => key)).toEqual(['web']);
  });

  it('that cannot be written is reported once', async () => {
    const state = await usedState();
    const store = await state.open();
    const log: string[] = [];
    const copier = new StoreCopier(store, join(state.paths.store, 'no', 'folder'), (text) => log.push(text));
    afterThisTest(() => copier.close());
    for (let n = 0; n < 3; n += 1) await copier.copy();
    expect(log).toEqual([expect.stringContaining('its copy cannot be written')]);
  });
});

describe('a damaged row', () => {
  it('is that of the copy again, and said to be', async () => {
    const state = await usedState();
    await damage(state.paths.store, 'services', 'web');
    const store = await state.open();
    expect(store.table('services').get('web')).toEqual(service('web'));
    expect(state.log).toEqual([
      expect.stringMatching(/the row web of services is damaged and is now that of the copy of \d{4}-/),
    ]);
    expect(damagedRows(state.paths.damaged)).toEqual({ leftOut: [], restored: ['services.web'] });
    expect(leftOutServices(state.paths.damaged)).toEqual(new Set());
    await store.close();
    // It is in the store again, without a copy too.
    rmSync(state.paths.storeCopy);
    expect(names(await state.open())).toEqual(['web']);
    expect(state.log).toHaveLength(1);
  });

  it('that is found by the next copy stays in the copy', async () => {
    const state = await usedState();
    const store = await state.open();
    for (const name of ['api', 'db']) await store.table('services').put(name, service(name));
    await writeStoreCopy(state.paths.storeCopy, store.rows());
    await store.close();
    for (const key of ['api', 'web']) await damage(state.paths.store, 'services', key);
    const copier = new StoreCopier(await state.open(), state.paths.storeCopy, () => {});
    afterThisTest(() => copier.close());
    const copied = readStoreCopy(state.paths.storeCopy);
    await copier.copy();
    expect(readStoreCopy(state.paths.storeCopy)).toEqual(copied);
    expect(state.log).toHaveLength(2);
  });

  it('of what is over is not taken from the copy', async () => {
    const state = newState();
    const store = await state.open();
    await store.table('doors').put('web', { asleepAfter: null });
    await writeStoreCopy(state.paths.storeCopy, store.rows());
    await store.close();
    await damage(state.paths.store, 'doors', 'web');
    expect((await state.open()).table('doors').all()).toEqual([]);
    expect(damagedRows(state.paths.damaged)).toEqual({ leftOut: ['doors.web'], restored: [] });
  });

  it.each([true, false])(
    'of a workload ends the positions of watches (in the copy: %s)',
    async (isCopied) => {
      const state = newState();
      const store = await state.open();
      await store.table('watches').put('c/apps', { clusterId: 'c' } as WatchPosition);
      await store.table('workloads').put('w', { id: 'w' } as StoredWorkload);
      if (isCopied) await writeStoreCopy(state.paths.storeCopy, store.rows());
      await store.close();
      await damage(state.paths.store, 'workloads', 'w');
      const again = await state.open();
      expect(again.table('watches').all()).toHaveLength(1);
      expect(again.table('workloads').all()).toHaveLength(isCopied ? 1 : 0);
      expect(again.table('watches').all()).toEqual([]);
    },
  );

  it('is kept in a file, named in the log, and out of the next copy', async () => {
    const state = await usedState();
    await damage(state.paths.store, 'tethers', 't/1');
    await damage(state.paths.store, 'services', 'new');
    const store = await state.open();
    expect(store.table('tethers').all()).toEqual([]);
    expect(names(store)).toEqual(['web']);
    expect(state.log).toEqual([
      expect.stringMatching(/the row t\/1 of tethers is damaged and was left out/),
      expect.stringMatching(/the row new of services is damaged and was left out/),
    ]);
    expect(damagedRows(state.paths.damaged)).toEqual({
      leftOut: ['services.new', 'tethers.t/1'],
      restored: [],
    });
    expect(leftOutServices(state.paths.damaged)).toEqual(new Set(['new']));
    const [file = ''] = readdirSync(state.paths.damaged);
    expect(readFileSync(join(state.paths.damaged, file), 'utf8')).toBe('rubbish');
    expect([...store.rows()].map(({ key }) => key)).toEqual(['web']);
    await store.close();
    // It is gone from the store: the next start does not name it again.
    await state.open();
    expect(state.log).toHaveLength(2);
  });
});

describe('a store of an earlier format', () => {
  /** Writes a store as format `format` did: without checksums. */
  async function write(path: string, format: number, rows: [string, unknown][]): Promise<void> {
    const env = open<Uint8Array, string>({ path, noSubdir: true, encoding: 'binary', maxDbs: 32 });
    const table = (name: string) => env.openDB<Uint8Array, string>({ name, encoding: 'binary' });
    for (const [key, row] of rows)
      await table('services').put(key, encodeMsgpack(format === 1 ? row : JSON.stringify(row)));
    await table('meta').put('format', encodeMsgpack(format));
    await env.close();
  }

  it.each([1, 2])('%i is upgraded after it was copied, with its environments sealed', async (format) => {
    const state = newState();
    const web = { ...service('web'), spec: spec({ name: 'web', env: [['SECRET', 'in the clear']] }) };
    await write(state.paths.store, format, [['web', web]]);
    const store = await state.open();
    expect(store.format).toBe(3);
    expect(store.table('services').get('web')).toEqual({ ...web, sealedEnv: 'sealed' });
    expect(readStoreCopy(state.paths.storeCopy)).toHaveLength(1);
    await store.table('services').put('api', service('api'));
    await store.close();
    expect(names(await state.open())).toEqual(['api', 'web']);
  });

  it('loses only rows that are no services', async () => {
    const state = newState();
    const { cmd: _, ...noCommand } = service('bad').spec;
    await write(state.paths.store, 2, [
      ['bad', { spec: noCommand, revision: 1 }],
      ['web', service('web')],
      ['worse', 7],
    ]);
    expect(names(await state.open())).toEqual(['web']);
    const { leftOut, restored } = damagedRows(state.paths.damaged);
    expect([leftOut.sort(), restored]).toEqual([['services.bad', 'services.worse'], []]);
  });

  it('is refused with its version when it is newer', async () => {
    const state = newState();
    const store = openStore(state.paths.store);
    await store.table('meta').put('format', 4);
    await store.close();
    await expect(state.open()).rejects.toMatchObject({ message: expect.stringContaining('has format 4') });
  });
});
