// The logs of all services, and who is told that they grow.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LogStream } from '../logs/format.ts';
import { LogWriter } from '../logs/writer.ts';
import type { LogLimits } from '../protocol/host.ts';

export interface LogWriters {
  append(name: string, stream: LogStream, run: string, bytes: Uint8Array): void;
  /** Nobody writes to the log of this service for now. */
  closeFiles(service: string): void;
  /** Deletes the logs of a service. */
  remove(service: string): void;
  follow(name: string, on: boolean): void;
  /** Nobody follows anything any more. */
  unfollowAll(): void;
  setLimits(limits: LogLimits): void;
  /** Tells now what has grown in this turn: before the end of a run is told, all of its output is. */
  notifyGrowth(): void;
  droppedBytes(): { service: string; bytes: number }[];
}

/** `grew` is called at most once per turn and service, with the logical end of a log that is followed. */
export function createLogWriters(
  folder: string,
  now: () => number,
  onGrowth: (service: string, end: number) => void,
): LogWriters {
  // Until the daemon has said what it wants nothing is taken away.
  const limits: LogLimits = { maxBytes: Number.POSITIVE_INFINITY, keep: Number.POSITIVE_INFINITY };
  const logs = new Map<string, LogWriter>();
  const followed = new Set<string>();
  const growing = new Set<string>();

  const logOf = (service: string): LogWriter => {
    const known = logs.get(service);
    if (known) return known;
    const log = new LogWriter(join(folder, service), limits, now);
    logs.set(service, log);
    return log;
  };
  const tell = () => {
    for (const service of growing) onGrowth(service, logOf(service).end);
    growing.clear();
  };
  const grows = (service: string) => {
    if (growing.size === 0) setImmediate(tell);
    growing.add(service);
  };
  return {
    append(service, stream, run, bytes) {
      logOf(service).append(stream, run, bytes);
      if (followed.has(service)) grows(service);
    },
    closeFiles: (service) => logs.get(service)?.close(),
    remove(service) {
      logs.get(service)?.close();
      logs.delete(service);
      growing.delete(service);
      rmSync(join(folder, service), { recursive: true, force: true });
    },
    follow(service, on) {
      if (!on) followed.delete(service);
      else {
        followed.add(service);
        // The follower may have looked before what came last: nobody was told of that.
        if (logs.has(service)) grows(service);
      }
    },
    unfollowAll: () => followed.clear(),
    setLimits: (to) => Object.assign(limits, to),
    notifyGrowth: tell,
    droppedBytes: () =>
      [...logs].flatMap(([service, { dropped }]) => (dropped > 0 ? [{ service, bytes: dropped }] : [])),
  };
}
