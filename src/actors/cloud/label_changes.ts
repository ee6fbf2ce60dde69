// Tells which workloads have other labels, on which the rights to them may depend: one message for all
// changes of a turn, because a listing brings thousands.
import type { StoredWorkload } from '../../protocol/cloud.ts';

export class LabelChanges {
  private readonly tell: (ids: string[]) => void;
  private readonly ids = new Set<string>();

  constructor(tell: (ids: string[]) => void) {
    this.tell = tell;
  }

  /** `before` undefined: it was not in its cluster, where it may have had other labels earlier. */
  onRowChange(id: string, before: StoredWorkload | undefined, after: StoredWorkload | undefined): void {
    if (!after || before?.seen.labels === after.seen.labels) return;
    if (this.ids.size === 0)
      setImmediate(() => {
        this.tell([...this.ids]);
        this.ids.clear();
      });
    this.ids.add(id);
  }
}
