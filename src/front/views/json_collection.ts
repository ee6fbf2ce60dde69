// Resources as JSON texts in the order of their keys. The text of the whole list is joined at its first use
// and kept until an entry changes.

/** A resource with its JSON. `key` determines its position in the list and never changes. */
export interface JsonEntry {
  id: string;
  key: string;
  json: string;
}

export class JsonCollection<E extends JsonEntry> {
  private readonly entries = new Map<string, E>();
  private order: readonly E[] = [];
  /** Entries that are not in `order` yet. */
  private added: E[] = [];
  /** True while `order` still has removed entries: a removal costs nothing until the next read. */
  private hasRemoved = false;
  private joined: string | null = null;

  get size(): number {
    return this.entries.size;
  }

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
      this.added.push(entry);
    }
  }

  /** Changes only the JSON of an entry. */
  putJson(entry: E, json: string): void {
    this.joined = null;
    entry.json = json;
  }

  remove(id: string): void {
    if (!this.entries.delete(id)) return;
    this.hasRemoved = true;
    this.joined = null;
  }

  /** Removes every entry whose id `isKept` rejects. */
  retain(isKept: (id: string) => boolean): void {
    for (const id of this.entries.keys()) if (!isKept(id)) this.remove(id);
  }

  /** All entries in the order of their keys. The array never changes, its entries do. */
  inOrder(): readonly E[] {
    if (this.hasRemoved || this.added.length > 0) {
      const live = [...this.order, ...this.added].filter((entry) => this.entries.get(entry.id) === entry);
      // The part that was sorted before is a single run for the sort, and costs little more than one
      // comparison per entry.
      this.order = live.sort((one, other) => (one.key < other.key ? -1 : 1));
      this.added = [];
      this.hasRemoved = false;
    }
    return this.order;
  }

  /** The JSON of all entries with commas between them, without brackets. */
  itemsJson(): string {
    this.joined ??= this.inOrder()
      .map(({ json }) => json)
      .join(',');
    return this.joined;
  }
}
