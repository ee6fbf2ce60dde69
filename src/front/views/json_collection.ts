// Resources as JSON texts in the order of their keys. The text of the list is joined when first asked for and
// kept until an entry changes.

/** A resource with its JSON. `key` gives its place in the list and never changes. */
export interface JsonEntry {
  id: string;
  key: string;
  json: string;
}

export class JsonCollection<E extends JsonEntry> {
  private readonly entries = new Map<string, E>();
  private order: E[] = [];
  /** False while entries have been appended to `order` since it was last sorted. */
  private isSorted = true;
  private joined: string | null = null;

  get(id: string): E | undefined {
    return this.entries.get(id);
  }

  ids(): string[] {
    return [...this.entries.keys()];
  }

  /** Adds an entry or updates the one with the same id. */
  put(entry: E): void {
    const known = this.entries.get(entry.id);
    this.joined = null;
    if (known) Object.assign(known, entry);
    else {
      this.entries.set(entry.id, entry);
      this.order.push(entry);
      this.isSorted = false;
    }
  }

  /** Removes every entry whose id `isKept` rejects. */
  retain(isKept: (id: string) => boolean): void {
    this.order = this.order.filter(({ id }) => isKept(id) || !this.entries.delete(id));
    this.joined = null;
  }

  /** The JSON of all entries with commas between them, without brackets. */
  itemsJson(): string {
    // The part that was sorted before is one run to the sort and costs little more than one comparison per
    // entry.
    if (!this.isSorted) this.order.sort((one, other) => (one.key < other.key ? -1 : 1));
    this.isSorted = true;
    this.joined ??= this.order.map(({ json }) => json).join(',');
    return this.joined;
  }
}
