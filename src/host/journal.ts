// The logs of all services, and who is told that they grow.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LogLimits } from '../protocol/host.ts';
import type { LogStream } from '../protocol/log.ts';
import { type Log, openLog } from './logs.ts';

export interface Journal {
  append(service: string, stream: LogStream, run: string, bytes: Uint8Array): void;
  /** Nobody writes to the log of this service for now. */
  rest(service: string): void;
  /** Deletes the logs of a service. */
  forget(service: string): void;
  follow(service: string, on: boolean): void;
  /** Nobody follows anything any more. */
  unfollowAll(): void;
  limit(limits: LogLimits): void;
  /** Tells now what has grown in this turn: before the end of a run is told, all of its output is. */
  tell(): void;
  dropped(): { service: string; bytes: number }[];
}

/** `grew` is called at most once per turn and service, with the logical end of a log that is followed. */
export function createJournal(
  folder: string,
  now: () => number,
  grew: (service: string, end: number) => void,
): Journal {
  // Until the daemon has said what it wants nothing is taken away.
  const limits: LogLimits = { maxBytes: Number.POSITIVE_INFINITY, keep: Number.POSITIVE_INFINITY };
  const logs = new Map<string, Log>();
  const followed = new Set<string>();
  const growing = new Set<string>();

  const logOf = (service: string): Log => {
    const known = logs.get(service);
    if (known) return known;
    const log = openLog(join(folder, service), limits, now);
    logs.set(service, log);
    return log;
  };
  const tell = () => {
    for (const service of growing) grew(service, logOf(service).end);
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
    rest: (service) => logs.get(service)?.close(),
    forget(service) {
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
    limit: (to) => Object.assign(limits, to),
    tell,
    dropped: () =>
      [...logs].flatMap(([service, { dropped }]) => (dropped > 0 ? [{ service, bytes: dropped }] : [])),
  };
}
