// Which request to put a workload to sleep or to wake it came last: docs/reference.md "Bulk sleep and wake".
import type { BulkChange } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';

type Goal = BulkChange['to'];

export class RequestOrder {
  private count = 0;
  private openBulks = 0;
  /** The last request for each workload, as long as bulk changes are under way. */
  private readonly last = new Map<string, { to: Goal; order: number }>();

  /** Whether a bulk change is under way. */
  get isOpen(): boolean {
    return this.openBulks > 0;
  }

  /** The place of a new request among all of them. */
  next(): number {
    this.count += 1;
    return this.count;
  }

  /** Runs a bulk change, with which later requests are compared. */
  async during<R>(work: () => Promise<R>): Promise<R> {
    this.openBulks += 1;
    try {
      return await work();
    } finally {
      this.openBulks -= 1;
      if (this.openBulks === 0) this.last.clear();
    }
  }

  /** The request at the place `order` wants a workload to be `to`. */
  note(id: string, to: Goal, order: number): void {
    if (this.isOpen && order > (this.last.get(id)?.order ?? 0)) this.last.set(id, { to, order });
  }

  /** Throws workload_conflict when a later request than the one at `order` wants the opposite. */
  assertLast(id: string, to: Goal, order: number): void {
    const last = this.last.get(id);
    if (last === undefined || last.order <= order || last.to === to) return;
    const wish = last.to === 'asleep' ? 'put it to sleep' : 'wake it';
    throw fail('workload_conflict', `a later request was to ${wish}, and takes precedence`);
  }
}
