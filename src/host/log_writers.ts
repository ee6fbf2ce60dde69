// The logs of all services, and the growth notifications to followers.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LogRunMark, LogStream } from '../logs/format.ts';
import { endOfLog, LogWriter } from '../logs/writer.ts';
import { fail } from '../protocol/errors.ts';
import type { LogLimits } from '../protocol/host.ts';
import type { LogBytes } from '../protocol/system.ts';
import { LogEnds } from './log_ends.ts';

export interface LogWriters {
  /** Adds output of a run of the service `name`. Never throws. */
  append(name: string, stream: LogStream, run: string, bytes: Uint8Array): void;
  /** Records the start or the end of a run, as `LogWriter.appendMark`. Never throws. */
  mark(name: string, mark: LogRunMark, isRepeat: boolean): void;
  /** Closes the files of a service that writes nothing for now. */
  closeFiles(name: string): void;
  /** Deletes the logs of a service. Fails internal if the system refuses. */
  remove(name: string): void;
  /** Starts or stops the growth notifications of a service. */
  follow(name: string, on: boolean): void;
  /** Stops all notifications. */
  unfollowAll(): void;
  setLimits(limits: LogLimits): void;
  /** The two folders of `createLogWriters` were renamed. */
  moveTo(folder: string, endsFolder: string): void;
  /** Sends the notifications of this turn now, because a run's output must be announced before its end. */
  notifyGrowth(): void;
  /** Bytes lost to a full disk, for each service that has lost any. */
  droppedBytes(): { service: string; bytes: number }[];
  /** The output of each service that has a log here. */
  written(): LogBytes[];
}

function removeLogs(folder: string, name: string, ends: LogEnds): void {
  try {
    ends.note(name, endOfLog(join(folder, name)));
    rmSync(join(folder, name), { recursive: true, force: true });
  } catch (error) {
    throw fail('internal', `the logs of ${name} cannot be removed: ${(error as Error).message}`, {
      hint: 'Make the folder that the message names removable, then try again.',
    });
  }
}

/** The notifications of growing logs: at most one per turn and service, with the end of its log. */
function growthNotices(endOf: (name: string) => number, onGrowth: (name: string, end: number) => void) {
  const followed = new Set<string>();
  const growing = new Set<string>();
  const notifyGrowth = (): void => {
    for (const name of growing) onGrowth(name, endOf(name));
    growing.clear();
  };
  return {
    followed,
    notifyGrowth,
    onGrown(name: string): void {
      if (!followed.has(name)) return;
      if (growing.size === 0) setImmediate(notifyGrowth);
      growing.add(name);
    },
    forget: (name: string) => void growing.delete(name),
  };
}

/**
 * Opens the logs in `folder`; `endsFolder` has where removed ones have ended. `onGrowth` is called at most
 * once per turn and service, with the logical end of its log.
 */
export function createLogWriters(
  folder: string,
  endsFolder: string,
  now: () => number,
  onGrowth: (name: string, end: number) => void,
): LogWriters {
  // Nothing is deleted until the daemon has sent its limits.
  const limits: LogLimits = { maxBytes: Number.POSITIVE_INFINITY, keep: Number.POSITIVE_INFINITY };
  const ends = new LogEnds(endsFolder, now());
  const logs = new Map<string, LogWriter>();
  let current = folder;

  const logOf = (name: string): LogWriter => {
    const known = logs.get(name);
    if (known) return known;
    const log = new LogWriter(join(current, name), limits, now, ends.of(name));
    logs.set(name, log);
    return log;
  };
  const { followed, notifyGrowth, onGrown, forget } = growthNotices((name) => logOf(name).end, onGrowth);
  return {
    append(name, stream, run, bytes) {
      logOf(name).append(stream, run, bytes);
      onGrown(name);
    },
    mark(name, mark, isRepeat) {
      logOf(name).appendMark(mark, isRepeat);
      onGrown(name);
    },
    closeFiles: (name) => logs.get(name)?.close(),
    remove(name) {
      logs.get(name)?.close();
      logs.delete(name);
      forget(name);
      removeLogs(current, name, ends);
    },
    follow(name, on) {
      if (!on) followed.delete(name);
      else {
        followed.add(name);
        // The follower may have read before the latest output, which caused no notification.
        if (logs.has(name)) onGrown(name);
      }
    },
    unfollowAll: () => followed.clear(),
    setLimits: (to) => Object.assign(limits, to),
    moveTo(to, endsTo) {
      current = to;
      ends.folder = endsTo;
      for (const [name, log] of logs) log.folder = join(to, name);
    },
    notifyGrowth,
    droppedBytes: () =>
      [...logs].flatMap(([name, { dropped }]) => (dropped > 0 ? [{ service: name, bytes: dropped }] : [])),
    written: () => [...logs].map(([name, { end, dropped }]) => ({ service: name, bytes: end, dropped })),
  };
}
