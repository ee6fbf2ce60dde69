// One run of a service, from start to end.
import { processRow } from '../../adapters/process/process_table.ts';
import { urlPort } from '../../adapters/ready_probe.ts';
import { unbracketedHost } from '../../adapters/url_host.ts';
import type { LedgerRun, RunMetadata, SpawnReply } from '../../protocol/host.ts';
import { newRunId } from '../../protocol/names.ts';
import type { StartReply, StoredService } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { MIB } from '../../settings/limits.ts';
import { isLoopback } from '../../settings/loopback.ts';

export interface Run {
  id: string;
  metadata: RunMetadata;
  pty: boolean;
  /** Started by the restart policy, not by a client. */
  byPolicy: boolean;
  /** null: no deadline to become ready. */
  timeoutMs: number | null;
  /** Monotonic milliseconds at which the host was asked for it; null: by an earlier incarnation. */
  askedAt: number | null;
  /** Settles when the process exists, or when it is certain that none will. */
  spawned: Deferred<StartReply>;
  /** Settles when the run is ready, or when it is certain that it never will be. */
  ready: Deferred<StartReply>;
}

export type LiveRun = Run & SpawnReply;

/** A new run, planned from the current spec. */
export function plannedRun(
  stored: StoredService,
  {
    clock,
    timeoutMs,
    restarts,
    byPolicy,
  }: Pick<Run, 'timeoutMs' | 'byPolicy'> & { clock: Clock; restarts: number },
): Run {
  const { spec, revision } = stored;
  const now = clock.now();
  const { agent, kind, port, ready } = spec;
  const task = kind === 'task' ? { content: stored.processHash ?? '' } : undefined;
  const deadline = timeoutMs === null ? null : now + timeoutMs;
  return {
    id: newRunId(now),
    metadata: { revision, port, ready, passed: false, deadline, restarts, ...(task && { task }) },
    pty: agent !== null,
    byPolicy,
    timeoutMs,
    askedAt: clock.monotonic(),
    spawned: deferred(),
    ready: deferred(),
  };
}

/** `url` with `innerPort`, if it leads to `port` of this machine. */
function readyBehindDoor(url: string | null, port: number, innerPort: number): string | null {
  if (url === null) return null;
  const inner = new URL(url);
  const host = unbracketedHost(inner);
  const isHere = host === 'localhost' || host.endsWith('.localhost') || isLoopback(host);
  if (!isHere || urlPort(inner) !== port) return url;
  inner.port = String(innerPort);
  return inner.href;
}

/** The ready URL of a run of a service with `ready`: behind a door, the port of the process is asked. */
export const readyOfRun = (ready: string | null, { doorPort, port }: RunMetadata): string | null =>
  doorPort === undefined || port === null ? ready : readyBehindDoor(ready, doorPort, port);

/** The metadata of a run that gets `innerPort` from the door on its port. `isAwake`: it never sleeps. */
export function behindDoor(metadata: RunMetadata, innerPort: number, isAwake: boolean): RunMetadata {
  const { port } = metadata;
  if (port === null) return metadata;
  return { ...metadata, port: innerPort, doorPort: port, ...(isAwake ? { awake: true } : {}) };
}

/** The port at which clients reach a run. */
export const publicPort = ({ doorPort, port }: RunMetadata): number | null => doorPort ?? port;

/** The answer to the start of a task that has completed after `ms` milliseconds. */
export const completedReply = (name: string, ms: number): StartReply => ({
  name,
  status: 'completed',
  pid: null,
  ms,
});

/** A run from the host's ledger, started by another daemon or an earlier incarnation of the actor. */
export function runFromLedger({ run, memo, pty, pid, startTicks, startedAt }: LedgerRun): LiveRun {
  const timeoutMs = memo.deadline === null ? null : Math.max(0, memo.deadline - startedAt);
  const byPolicy = memo.restarts > 0;
  const pending = { spawned: deferred<StartReply>(), ready: deferred<StartReply>() };
  return {
    id: run,
    metadata: memo,
    pty,
    byPolicy,
    timeoutMs,
    askedAt: null,
    ...pending,
    pid,
    startTicks,
    startedAt,
    rssMB: 0,
  };
}

/** Adds the current memory of its first process: at the spawn, that process was only a shell. */
export function withMeasuredMemory(run: LiveRun): LiveRun {
  const row = processRow(run.pid);
  return row?.startTicks === run.startTicks ? { ...run, rssMB: Math.ceil(row.rssBytes / MIB) } : run;
}
