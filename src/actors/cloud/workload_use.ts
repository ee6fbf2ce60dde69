// The use of workloads, by which idleness is counted: docs/reference.md "Auto-sleep".

import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { Clock, MessageOf } from '../../runtime/actor.ts';
import type { ActivityReports } from './activity_reports.ts';
import { usedAt } from './workload_record.ts';
import type { WorkloadTable } from './workload_table.ts';

export interface WorkloadUseOptions {
  clock: Clock;
  /** Unlike the time of day, nobody sets it. */
  steady: Clock;
  table: Pick<WorkloadTable, 'get' | 'update'>;
  reports: Pick<ActivityReports, 'report'>;
}

export class WorkloadUse {
  private readonly options: WorkloadUseOptions;

  constructor(options: WorkloadUseOptions) {
    this.options = options;
  }

  /** See WorkloadsProtocol. */
  activity(id: string, at: number): null {
    const { steady, table } = this.options;
    table.update(
      id,
      (row) => usedAt({ ...row, lastActivityAt: Math.max(at, row.lastActivityAt ?? 0) }, steady.now()),
      true,
    );
    this.report(id);
    return null;
  }

  /** See WorkloadsProtocol. */
  traffic({ id, lastByteAt }: MessageOf<WorkloadsProtocol, 'traffic'>): null {
    const { clock, steady, table } = this.options;
    const known = table.get(id);
    if (!known) return null;
    // The time of day may be set at any time; how long ago the byte moved does not change with it.
    const at = steady.now() - Math.max(0, clock.now() - lastByteAt);
    // Several tethers may lead to one workload.
    if (at > known.usedAt) table.update(id, (row) => usedAt(row, at), true);
    this.report(id);
    return null;
  }

  /** A wake needs them. It is no connection. */
  wished(ids: Iterable<string>): void {
    const { steady, table } = this.options;
    for (const id of ids) {
      table.update(id, (row) => usedAt(row, steady.now()), true);
      this.report(id);
    }
  }

  private report(id: string): void {
    const row = this.options.table.get(id);
    if (row) this.options.reports.report(row);
  }
}
