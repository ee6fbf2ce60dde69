// What the open connections to workloads last did, as the tethers report it.

import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { Message } from '../../runtime/actor.ts';

export class Traffic {
  /** By tether; only those with open connections. */
  private readonly open = new Map<string, { id: string; lastByteAt: number }>();

  report({ tetherId, id, open, lastByteAt }: Message<WorkloadsProtocol, 'traffic'>): void {
    if (open > 0) this.open.set(tetherId, { id, lastByteAt });
    else this.open.delete(tetherId);
  }

  /** When an open connection to the workload last moved a byte; null: none is open. */
  lastByte(id: string): number | null {
    let last: number | null = null;
    for (const row of this.open.values())
      if (row.id === id && (last === null || row.lastByteAt > last)) last = row.lastByteAt;
    return last;
  }
}
