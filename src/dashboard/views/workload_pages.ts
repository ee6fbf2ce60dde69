// Reads workloads page by page, however many there are: docs/reference.md "Lists of workloads".
import { signal } from '@preact/signals';
import type { Workload } from '../../client/browser.ts';

/** One page, and where the next one begins; null: it is the last page. */
export interface WorkloadPage {
  page: readonly Workload[];
  next: string | null;
}

/** All workloads of the clusters, kept page by page. One `refresh` at a time. */
export class WorkloadPages {
  /** In the order of the daemon: by cluster, namespace and name. */
  readonly rows = signal<readonly Workload[]>([]);
  /** Whether every page has been read. */
  readonly isWhole = signal(false);
  private readonly read: (from: string | null) => Promise<WorkloadPage>;
  private readonly pages: WorkloadPage[] = [];
  /** The page that the next refresh reads in turn, visible or not. */
  private turn = 0;

  constructor(read: (from: string | null) => Promise<WorkloadPage>) {
    this.read = read;
  }

  /**
   * Reads all pages the first time. Later it reads the pages with workloads in `inSight`, and one other page
   * in turn, so a refresh of a long list costs no more than that of a short one.
   */
  async refresh(inSight: ReadonlySet<string>): Promise<void> {
    if (!this.isWhole.peek()) return this.readFrom(0);
    this.turn = (this.turn + 1) % this.pages.length;
    const seen = this.pages.flatMap(({ page }, at) => (page.some(({ id }) => inSight.has(id)) ? at : []));
    for (const at of new Set([...seen, this.turn])) await this.readFrom(at);
  }

  /** Reads page `at`, and the pages after it as long as they begin elsewhere than before. */
  private async readFrom(at: number): Promise<void> {
    for (let index = at; ; index += 1) {
      const answer = await this.read(index === 0 ? null : (this.pages[index - 1]?.next ?? null));
      const isSameEnd = this.pages[index]?.next === answer.next && index + 1 < this.pages.length;
      this.pages[index] = answer;
      if (answer.next === null) this.pages.length = index + 1;
      this.publish();
      if (answer.next === null || isSameEnd) return;
    }
  }

  private publish(): void {
    // While page boundaries move, a workload may be on both its old and its new page.
    const rows = new Map(this.pages.flatMap(({ page }) => page.map((workload) => [workload.id, workload])));
    this.rows.value = [...rows.values()];
    this.isWhole.value = this.pages.at(-1)?.next === null;
  }
}
