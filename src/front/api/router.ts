// Finds the routes of a path. A pattern is fixed text with at most one parameter, which matches one or more
// characters other than a slash.
import type { Method } from '../../api/operation.ts';

export interface RoutePattern {
  method: Method;
  path: string;
}

/** The routes of one path. */
export interface PathEntry<R> {
  rows: Map<string, R>;
  /** The GET route on its own, because it is needed most. */
  get: R | undefined;
  /** The value of the header Allow. */
  allow: string;
}

export interface RouteMatch<R> {
  entry: PathEntry<R>;
  /** The value of the path's parameter, still percent-encoded; empty for a pattern without it. */
  key: string;
}

const PARAMETER = /\{[a-zA-Z]+\}/;

export class Router<R extends RoutePattern> {
  private readonly exact = new Map<string, RouteMatch<R>>();
  /** By the text before the parameter, then by the text after it. */
  private readonly named = new Map<string, Map<string, PathEntry<R>>>();

  /** Throws for two routes with the same method and path, and for a parameter outside the third segment. */
  constructor(rows: readonly R[]) {
    for (const row of rows) {
      const entry = this.entryOf(row.path);
      if (entry.rows.has(row.method)) throw new Error(`two rows for ${row.method} ${row.path}`);
      entry.rows.set(row.method, row);
      completeEntry(entry);
    }
    // An agent may be called `spinup`, so a fixed path inherits the methods it lacks from the pattern that
    // also matches it.
    for (const [path, found] of this.exact) {
      const other = this.findNamed(path);
      for (const [method, row] of other?.entry.rows ?? [])
        if (!found.entry.rows.has(method)) found.entry.rows.set(method, row);
      found.key = other?.key ?? '';
      completeEntry(found.entry);
    }
  }

  find(path: string): RouteMatch<R> | undefined {
    return this.exact.get(path) ?? this.findNamed(path);
  }

  private findNamed(path: string): RouteMatch<R> | undefined {
    // Every parameter is the third segment: `/v1/services/{name}...`, `/k8s/tethers/{id}...`.
    const start = path.indexOf('/', path.indexOf('/', 1) + 1) + 1;
    if (start <= 1) return undefined;
    const rests = this.named.get(path.slice(0, start));
    if (!rests) return undefined;
    const slash = path.indexOf('/', start);
    const end = slash < 0 ? path.length : slash;
    const entry = rests.get(path.slice(end));
    return entry && end > start ? { entry, key: path.slice(start, end) } : undefined;
  }

  private entryOf(path: string): PathEntry<R> {
    const [before = '', after] = path.split(PARAMETER);
    const fresh: PathEntry<R> = { rows: new Map(), get: undefined, allow: '' };
    if (after === undefined) {
      const found = this.exact.get(path) ?? { entry: fresh, key: '' };
      this.exact.set(path, found);
      return found.entry;
    }
    if (before.split('/').length !== 4) throw new Error(`the parameter of ${path} is not its third segment`);
    const rests = this.named.get(before) ?? new Map<string, PathEntry<R>>();
    this.named.set(before, rests);
    const entry = rests.get(after) ?? fresh;
    rests.set(after, entry);
    return entry;
  }
}

function completeEntry<R>(entry: PathEntry<R>): void {
  entry.get = entry.rows.get('GET');
  const methods = [...entry.rows.keys(), 'OPTIONS'];
  entry.allow = (entry.get ? [...methods, 'HEAD'] : methods).sort().join(', ');
}
