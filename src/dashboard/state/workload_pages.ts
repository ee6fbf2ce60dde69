// Reads workloads page by page, however many there are: docs/reference.md "Lists of workloads".
import { signal } from '@preact/signals';
import type { Workload } from '../../client/browser.ts';

/** One page, and where the next one begins; null: it is the last page. */
export interface WorkloadPage {
  page: readonly Workload[];
  next: string | null;
}

/** The states of workloads by id. */
export type WorkloadStates = ReadonlyMap<string, Workload['state']>;

/** The page with `states`; the same one if they change nothing. */
function withStates(page: readonly Workload[], states: WorkloadStates): readonly Workload[] {
  const stateOf = ({ id, state }: Workload): Workload['state'] => states.get(id) ?? state;
  if (states.size === 0 || page.every((one) => stateOf(one) === one.state)) return page;
  return page.map((one) => (stateOf(one) === one.state ? one : { ...one, state: stateOf(one) }));
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
  /** Whether every page has been read since the start, and since the last `distrust`. */
  private isCurrent = false;
  /** The states told since the request under way, whose answer may be older. */
  private readonly told = new Map<string, Workload['state']>();

  constructor(read: (from: string | null) => Promise<WorkloadPage>) {
    this.read = read;
  }

  /**
   * Reads all pages the first time. Later it reads the pages with workloads in `inSight`, and one other page
   * in turn, so a refresh of a long list costs no more than that of a short one.
   */
  async refresh(inSight: Pick<ReadonlySet<string>, 'has'>): Promise<void> {
    if (!this.isCurrent) return this.readAll();
    this.turn = (this.turn + 1) % this.pages.length;
    const seen = this.pages.flatMap(({ page }, at) => (page.some(({ id }) => inSight.has(id)) ? at : []));
    for (const at of new Set([...seen, this.turn])) await this.readFrom(at);
  }

  /** Shows workloads in the states that events have told. */
  setStates(states: WorkloadStates): void {
    for (const [id, state] of states) this.told.set(id, state);
    let hasChanged = false;
    for (const answer of this.pages) {
      const page = withStates(answer.page, states);
      hasChanged ||= page !== answer.page;
      answer.page = page;
    }
    if (hasChanged) this.publish();
  }

  /** Has the next refresh read all pages again. */
  distrust(): void {
    this.isCurrent = false;
  }

  /** Forgets all workloads, because another token may see others. */
  forget(): void {
    this.isCurrent = false;
    this.pages.length = 0;
    this.rows.value = [];
    this.isWhole.value = false;
  }

  private async readAll(): Promise<void> {
    this.isCurrent = true;
    try {
      await this.readFrom(0, true);
    } catch (error) {
      this.isCurrent = false;
      throw error;
    }
  }

  /** Reads page `at`, and `all` pages after it, or those that begin elsewhere than before. */
  private async readFrom(at: number, all = false): Promise<void> {
    for (let index = at; ; index += 1) {
      this.told.clear();
      const { page, next } = await this.read(index === 0 ? null : (this.pages[index - 1]?.next ?? null));
      const isSameEnd = this.pages[index]?.next === next && index + 1 < this.pages.length;
      this.pages[index] = { page: withStates(page, this.told), next };
      if (next === null) this.pages.length = index + 1;
      this.publish();
      if (next === null || (isSameEnd && !all)) return;
    }
  }

  private publish(): void {
    // While page boundaries move, a workload may be on both its old and its new page.
    const rows = new Map(this.pages.flatMap(({ page }) => page.map((workload) => [workload.id, workload])));
    this.rows.value = [...rows.values()];
    this.isWhole.value = this.pages.at(-1)?.next === null;
  }
}
