// The number of answers, by operation and status.

export class RequestCounts {
  private readonly byOperation = new Map<string, Map<number, number>>();

  /** Counts an answer. `operation` is its id; empty if the request matched none. */
  add(operation: string, status: number): void {
    let counts = this.byOperation.get(operation);
    if (!counts) {
      counts = new Map();
      this.byOperation.set(operation, counts);
    }
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }

  rows(): { operation: string; status: number; count: number }[] {
    return [...this.byOperation].flatMap(([operation, counts]) =>
      [...counts].map(([status, count]) => ({ operation, status, count })),
    );
  }
}
