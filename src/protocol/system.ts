// What the daemon is doing, for monitoring and people.
import type { NodeReading } from '../runtime/actor.ts';

import type { NoticeTargetStatus } from './notices.ts';

/** A thread's actors and event loop. */
export interface ThreadReading extends NodeReading {
  /** The longest delay of a timer in the last minute, in milliseconds. */
  lagMs: number;
  /** Time since the start of the thread in which its event loop was not idle, in milliseconds. */
  busyMs: number;
}

/** A thread that has been started. */
export interface ThreadStatus {
  name: string;
  /** The number of times it has died. */
  restarts: number;
  /** null: it does not answer, because it hangs or is being started. */
  reading: ThreadReading | null;
}

/** Output of a service since its log began. */
export interface LogBytes {
  service: string;
  bytes: number;
  /** Bytes lost to a full disk since the process host started. */
  dropped: number;
}

export interface HostReading {
  /** In its ledger. */
  runs: number;
  logs: LogBytes[];
}

export interface SystemReading {
  threads: ThreadStatus[];
  /** null: the process host does not answer. */
  host: HostReading | null;
  /** The targets of notices. */
  notices: readonly NoticeTargetStatus[];
  /** Sizes on disk. */
  storeBytes: number;
  journalBytes: number;
  /** Resident memory of the daemon's process, in bytes. */
  rssBytes: number;
}
