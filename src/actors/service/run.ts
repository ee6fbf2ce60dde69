// One run of a service, from start to end.
import { processRow } from '../../adapters/process/process_table.ts';
import { urlPort } from '../../adapters/ready_probe.ts';
import { unbracketedHost } from '../../adapters/url_host.ts';
import { bareTarget, type LiveField } from '../../protocol/checks.ts';
import type { LedgerRun, RunMetadata, SpawnReply } from '../../protocol/host.ts';
import { newRunId } from '../../protocol/names.ts';
import type { StartReply, StoredService } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { MIB } from '../../settings/limits.ts';
import { isLoopback } from '../../settings/loopback.ts';

/**
 * Who has started a run: a client; a change of files, or a restart that no client waits for; or the restart
 * policy.
 */
export type StartedBy = 'client' | 'change' | 'policy';

export interface Run {
  id: string;
  metadata: RunMetadata;
  pty: boolean;
  by: StartedBy;
  /** null: no deadline to become ready. */
  timeoutMs: number | null;
  /** Monotonic milliseconds at which the host was asked to start it; null: by an earlier daemon or actor. */
  askedAt: number | null;
  /** Monotonic milliseconds at which the wake was requested; absent: not woken, or by an earlier daemon. */
  wokeSince?: number;
  /** A log offset at or before the start of its output. */
  logFrom: number;
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
    restarts: { times, total },
    by,
    logFrom,
  }: Pick<Run, 'timeoutMs' | 'by' | 'logFrom'> & {
    clock: Clock;
    /** Restarts so far, and the times of those that count for the rule. */
    restarts: { total: number; times: readonly number[] };
  },
): Run {
  const { spec, revision } = stored;
  const now = clock.now();
  const { agent, kind, port, ready, live, limits } = spec;
  const task = kind === 'task' ? { content: stored.processHash ?? '' } : undefined;
  const deadline = timeoutMs === null ? null : now + timeoutMs;
  return {
    id: newRunId(now),
    metadata: {
      revision,
      port,
      ready,
      passed: false,
      deadline,
      restarts: total,
      ...(live !== null && { live }),
      ...(limits?.memoryMB !== undefined && { memoryMB: limits.memoryMB }),
      ...(times.length > 0 && { restartTimes: [...times] }),
      ...(task && { task }),
      ...(by === 'change' && { byChange: true }),
    },
    pty: agent !== null,
    by,
    timeoutMs,
    askedAt: clock.monotonic(),
    logFrom,
    spawned: deferred(),
    ready: deferred(),
  };
}

/** `url` with `innerPort`, if it points to `port` on this machine. */
function urlBehindDoor(url: string, port: number, innerPort: number): string {
  const inner = new URL(url);
  const host = unbracketedHost(inner);
  const isHere = host === 'localhost' || host.endsWith('.localhost') || isLoopback(host);
  if (!isHere || urlPort(inner) !== port) return url;
  inner.port = String(innerPort);
  return inner.href;
}

/** The check as it applies to a run: behind a door it probes the process's own port. */
export function checkOfRun(field: LiveField | null, { doorPort, port }: RunMetadata): LiveField | null {
  if (field === null || doorPort === undefined || port === null) return field;
  const inner = (url: string): string => urlBehindDoor(url, doorPort, port);
  if (typeof field === 'string') return inner(field);
  if ('http' in field && !field.http.startsWith('/')) return { ...field, http: inner(field.http) };
  if (!('tcp' in field) || field.tcp === true) return field;
  const { tcp } = field;
  return { ...field, tcp: inner(`tcp://${typeof tcp === 'number' ? `localhost:${tcp}` : bareTarget(tcp)}`) };
}

/** The metadata of a run that gets `innerPort` behind the door on its port. `isAwake`: it never sleeps. */
export function behindDoor(metadata: RunMetadata, innerPort: number, isAwake: boolean): RunMetadata {
  const { port } = metadata;
  if (port === null) return metadata;
  return { ...metadata, port: innerPort, doorPort: port, ...(isAwake ? { awake: true } : {}) };
}

/** The port at which clients reach a run. */
export const publicPort = ({ doorPort, port }: RunMetadata): number | null => doorPort ?? port;

/** The answer to the start of a task that completed after `ms` milliseconds. */
export const completedReply = (name: string, ms: number): StartReply => ({
  name,
  status: 'completed',
  pid: null,
  ms,
});

/** A run from the host's ledger, started by another daemon or an earlier incarnation of the actor. */
export function runFromLedger({ run, memo, pty, pid, startTicks, startedAt, cgroup }: LedgerRun): LiveRun {
  const timeoutMs = memo.deadline === null ? null : Math.max(0, memo.deadline - startedAt);
  const first: StartedBy = memo.byChange ? 'change' : 'client';
  const by = memo.restarts > 0 ? 'policy' : first;
  const pending = { spawned: deferred<StartReply>(), ready: deferred<StartReply>() };
  return {
    id: run,
    metadata: memo,
    pty,
    by,
    timeoutMs,
    askedAt: null,
    logFrom: 0,
    ...pending,
    pid,
    startTicks,
    startedAt,
    rssMB: 0,
    ...(cgroup !== undefined && { contained: true }),
  };
}

/** Measures the current memory of its first process again: at the spawn, that process was only a shell. */
export function withMeasuredMemory(run: LiveRun): LiveRun {
  const row = processRow(run.pid);
  return row?.startTicks === run.startTicks ? { ...run, rssMB: Math.ceil(row.rssBytes / MIB) } : run;
}
