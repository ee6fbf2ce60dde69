// Watched files: the idle processor time of a daemon whose service watches 50,000 files, next to 50,000 that
// git ignores. The floor is the same service without a watch.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Daemon, IDLE, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, cost, type Row } from './kit/harness.ts';
import { cpuMs } from './kit/process_stats.ts';

const FOLDERS = 500;
const FILES_PER_FOLDER = 100;
/** After this time, the watcher thread has read the tree and V8 has compiled its code. */
const SETTLE_MS = 5_000;
const WINDOW_MS = 10_000;
const WATCH_RETRY_MS = 100;

function writeTree(root: string): void {
  writeFileSync(join(root, '.gitignore'), 'out/\n');
  mkdirSync(join(root, '.git'));
  for (const kind of ['src', 'out'])
    for (let at = 0; at < FOLDERS; at += 1) {
      const folder = join(root, kind, `folder-${at}`);
      mkdirSync(folder, { recursive: true });
      for (let file = 0; file < FILES_PER_FOLDER; file += 1) writeFileSync(join(folder, `${file}.ts`), '');
    }
}

interface Explanation {
  watching: { folders: number } | null;
}

/** Percent of one core that the daemon uses while a service with this `watch` runs and no file changes. */
async function atRest({ ask, pid }: Daemon, cwd: string, watch: object | null): Promise<number> {
  await ask('POST', '/v1/services', { name: 'watched', port: null, cmd: IDLE, cwd, watch });
  await ask('POST', '/v1/services/watched/start');
  for (let isRead = watch === null; !isRead; ) {
    const { watching } = (await ask('GET', '/v1/services/watched/explain')) as Explanation;
    if (watching && watching.folders > FOLDERS + 2) throw new Error('ignored folders are watched');
    isRead = (watching?.folders ?? 0) > FOLDERS;
    if (!isRead) await pause(WATCH_RETRY_MS);
  }
  await pause(SETTLE_MS);
  const before = cpuMs(pid);
  await pause(WINDOW_MS);
  const spent = cpuMs(pid) - before;
  await ask('POST', '/v1/services/watched/stop');
  return (spent / WINDOW_MS) * 100;
}

const run = (): Promise<Row[]> =>
  withFolder(async (folder) => {
    const root = join(folder, 'tree');
    mkdirSync(root);
    writeTree(root);
    const daemon = await startDaemon(folder);
    try {
      const row = await cost(`${FOLDERS * FILES_PER_FOLDER} files at rest`, '% of a core', {
        floor: () => atRest(daemon, root, null),
        subject: () => atRest(daemon, root, { paths: ['**'] }),
        turns: 3,
      });
      return [row];
    } finally {
      await daemon.end();
    }
  });

export const watch: Benchmark = {
  name: 'watch',
  question: 'What do the files that a service watches cost while nothing changes?',
  run,
};
