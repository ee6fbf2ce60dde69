// One run of a service, from start to end.
import { processRow } from '../../adapters/process/process_table.ts';
import type { LedgerRun, RunMetadata, SpawnReply } from '../../protocol/host.ts';
import { newRunId } from '../../protocol/names.ts';
import type { StartResult, StoredService } from '../../protocol/service.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { MIB } from '../../settings/limits.ts';

export interface Run {
  id: string;
  metadata: RunMetadata;
  pty: boolean;
  /** Started by the restart policy, not by a client. */
  byPolicy: boolean;
  /** null: no deadline to become ready. */
  timeoutMs: number | null;
  /** Settles when the process exists, or when it is certain that none will. */
  spawned: Deferred<StartResult>;
  /** Settles when the run is ready, or when it is certain that it never will be. */
  ready: Deferred<StartResult>;
}

export type LiveRun = Run & SpawnReply;

/** A new run, planned from the current spec. */
export function plannedRun(
  { spec, revision }: StoredService,
  {
    now,
    timeoutMs,
    restarts,
    byPolicy,
  }: Pick<Run, 'timeoutMs' | 'byPolicy'> & { now: number; restarts: number },
): Run {
  const { agent, port, ready } = spec;
  const deadline = timeoutMs === null ? null : now + timeoutMs;
  return {
    id: newRunId(now),
    metadata: { revision, port, ready, passed: false, deadline, restarts },
    pty: agent !== null,
    byPolicy,
    timeoutMs,
    spawned: deferred(),
    ready: deferred(),
  };
}

/** A run from the host's ledger, started by another daemon or an earlier incarnation of the actor. */
export function runFromLedger({ run, memo, pty, pid, startTicks, startedAt }: LedgerRun): LiveRun {
  const timeoutMs = memo.deadline === null ? null : Math.max(0, memo.deadline - startedAt);
  const byPolicy = memo.restarts > 0;
  const pending = { spawned: deferred<StartResult>(), ready: deferred<StartResult>() };
  return {
    id: run,
    metadata: memo,
    pty,
    byPolicy,
    timeoutMs,
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
