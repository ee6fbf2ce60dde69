// What the daemon is doing at one moment, from all its threads and the process host:
// docs/reference.md "Metrics".
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { NoticeTargetStatus } from '../protocol/notices.ts';
import type { HostReading, SystemReading } from '../protocol/system.ts';
import { type Node, tolerateFailure } from '../runtime/actor.ts';
import { THREADS } from '../settings/limits.ts';
import { statePaths } from '../settings/state_paths.ts';
import { readThread } from './thread_instance.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';

/** The size of a file in bytes; 0 if it does not exist. */
const fileSize = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

async function folderSize(path: string): Promise<number> {
  const names = await readdir(path).catch(() => []);
  const sizes = await Promise.all(names.map((name) => fileSize(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Returns a function that reads everything. `lagMs` is that of the main thread. */
export function systemReader(
  node: Node,
  threads: Pick<ThreadSupervisor, 'read'>,
  stateDir: string,
  lagMs: () => number,
): () => Promise<SystemReading> {
  const { store, events } = statePaths(stateDir);
  const readHost = (): Promise<HostReading | null> =>
    tolerateFailure(node.ref('host').ask('read', {}, { deadlineMs: THREADS.readTimeoutMs }), () => null);
  const readNotices = (): Promise<{ targets: readonly NoticeTargetStatus[] }> =>
    tolerateFailure(node.ref('notices').ask('status', {}, { deadlineMs: THREADS.readTimeoutMs }), () => ({
      targets: [],
    }));
  return async () => {
    const [workers, host, { targets: notices }, storeBytes, journalBytes] = await Promise.all([
      threads.read(),
      readHost(),
      readNotices(),
      fileSize(store),
      folderSize(events),
    ]);
    const main = { name: node.name, restarts: 0, reading: readThread(node, lagMs()) };
    const rssBytes = process.memoryUsage.rss();
    return { threads: [main, ...workers], host, notices, storeBytes, journalBytes, rssBytes };
  };
}
