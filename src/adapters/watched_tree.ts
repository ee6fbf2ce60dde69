// Watches the files that globs match: one watch per folder in which one can be, none in ignored folders.
// docs/reference.md "Watch".
//
// Node's `recursive` watches each file on Linux, and reads every folder to find them. A folder's own watch
// reports the names of its changed entries, and costs nothing while nothing changes.
import { type FSWatcher, readdirSync, type Stats, watch } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WatchRequest, WatchState } from '../protocol/watcher.ts';
import type { Clock } from '../runtime/actor.ts';
import { WATCH } from '../settings/limits.ts';
import { servedMounts, unansweredReason } from './answering_path.ts';
import { resolveLinks } from './folder_links.ts';
import { IGNORE_FILE, IgnoreRules, isIgnored, rulesAbove, rulesIn } from './ignore_rules.ts';
import { type PathGlob, pathGlob } from './path_globs.ts';
import { type Folder, identityOf, refusalText, statOf } from './watched_folder.ts';

export interface WatchedTreeOptions extends Omit<WatchRequest, 'service'> {
  clock: Clock;
  /** Called with the first of the changed files, relative to `cwd`. */
  onChange: (paths: string[]) => void;
  /** Called after each walk with what is watched, and why anything is not. */
  onState: (state: WatchState) => void;
  onDefect: (error: unknown) => void;
  /** Default: `WATCH.maxFolders`. */
  maxFolders?: number;
}

/** Never of interest, unless `ignore` re-includes them with `!`. */
const ALWAYS_IGNORED = [
  ...['.git/', '.hg/', '.svn/', '.jj/', 'node_modules/', '__pycache__/', '.berth/'],
  ...['*~', '.#*', '*.sw[a-p]', '4913', '.DS_Store'],
].join('\n');

/** How long to gather events before the files are examined. */
const GATHER_MS = 10;
/** A walk yields to other work after this time. */
const SLICE_MS = 15;
/**
 * The system drops events when more than 16,384 are waiting. After this many at once, every folder is read
 * again.
 */
const MANY_EVENTS = 4_000;
/** The time stamps of files are coarser than the clock. */
const STAMP_MS = 10;

export class WatchedTree {
  private readonly options: WatchedTreeOptions;
  /** `options.cwd` without symbolic links, and the globs and rules that are relative to it. */
  private cwd = '';
  private globs: readonly PathGlob[] = [];
  private ownRules: IgnoreRules | null = null;
  /** The folders of `paths`, as far as they exist. */
  private readonly roots = new Map<string, Folder>();
  /** The watch above each root that does not exist, and above each link in `options.cwd`. */
  private readonly anchors = new Map<string, FSWatcher>();
  private folders = 0;
  /** Mounts of file systems that may not answer, and those that did not at the last walk. */
  private mounts: ReadonlySet<string> = new Set();
  private readonly unanswered = new Set<string>();
  private refusal: string | null = null;
  private isClosed = false;
  /** Names with events, by folder; '' for the folder itself. */
  private pending = new Map<Folder, Set<string>>();
  private cancelGather: (() => void) | null = null;
  private cancelReport: (() => void) | null = null;
  private cancelRetry: (() => void) | null = null;
  /** The first changed files, and the monotonic time of the first change. */
  private changed = new Set<string>();
  private changedAt: number | null = null;
  /** Walks and looks at events, one at a time. */
  private work: Promise<void> = Promise.resolve();
  private underWay = 0;

  /** Begins at once; `onState` tells when every folder is watched. */
  constructor(options: WatchedTreeOptions) {
    this.options = options;
    this.queue(() => this.walkAll(options.since));
  }

  /** Resolves when everything that is known by now has been looked at. */
  settled(): Promise<void> {
    return this.work;
  }

  close(): void {
    this.isClosed = true;
    for (const cancel of [this.cancelGather, this.cancelReport, this.cancelRetry]) cancel?.();
    this.closeWatchers();
  }

  private get isFull(): boolean {
    const { maxFolders = WATCH.maxFolders } = this.options;
    return this.folders >= maxFolders;
  }

  private closeWatchers(): void {
    for (const watcher of this.anchors.values()) watcher.close();
    this.anchors.clear();
    for (const root of this.roots.values()) this.drop(root);
    this.roots.clear();
  }

  private queue(work: () => Promise<void>): void {
    this.underWay += 1;
    this.work = this.work
      .then(work)
      .catch(this.options.onDefect)
      .finally(() => {
        this.underWay -= 1;
      });
  }

  private async walkAll(since: number | null): Promise<void> {
    if (this.isClosed) return;
    this.refusal = null;
    this.unanswered.clear();
    this.mounts = servedMounts();
    if (await this.doesAnswer(this.options.cwd)) this.follow();
    for (const path of new Set(this.globs.map(({ root }) => root)))
      if (await this.doesAnswer(path)) await this.openRoot(path, since);
    this.tellState();
  }

  /** Follows the links in `options.cwd`, and watches for others in their place. */
  private follow(): void {
    const { cwd, ignore, paths } = this.options;
    const { path, links } = resolveLinks(cwd);
    this.cwd = path;
    const resolved = (pattern: string): string =>
      pattern.startsWith(`${cwd}/`) ? path + pattern.slice(cwd.length) : pattern;
    this.globs = paths.map((pattern) => pathGlob(resolved(pattern), path));
    this.ownRules = new IgnoreRules(path, ignore.join('\n'));
    const look = async (): Promise<void> => {
      if (!this.isClosed && resolveLinks(cwd).path !== this.cwd) await this.walkAgain(0);
    };
    for (const link of links) {
      const watcher = this.tryWatch(dirname(link), (name) => {
        if (name === null || name === basename(link)) this.queue(look);
      });
      if (watcher) this.anchors.set(link, watcher);
    }
  }

  private async doesAnswer(path: string): Promise<boolean> {
    const reason = await unansweredReason(path, { mounts: this.mounts });
    if (reason !== null) this.refusal ??= `${reason}: it is not watched`;
    return reason === null;
  }

  /** Reads every folder again. Changes made meanwhile are noticed by their time. */
  private async walkAgain(since = this.options.clock.now() - STAMP_MS): Promise<void> {
    this.closeWatchers();
    this.pending.clear();
    await this.walkAll(since);
  }

  private tellState(): void {
    if (this.isClosed) return;
    const { clock, onState } = this.options;
    onState({ folders: this.folders, trouble: this.refusal });
    this.cancelRetry?.();
    const again = (): void => this.queue(() => this.walkAgain());
    const mayRetry = this.refusal !== null && !this.isFull;
    this.cancelRetry = mayRetry ? clock.after(WATCH.retryMs, again) : null;
  }

  /** Watches the root `path` or, if it does not exist, the nearest existing folder above it. */
  private async openRoot(path: string, since: number | null): Promise<void> {
    const stats = statOf(path);
    if (stats?.isDirectory()) {
      const above = [new IgnoreRules(path, ALWAYS_IGNORED), ...rulesAbove(path)];
      const globs = this.globs.filter(({ root }) => root === path);
      const root = this.openFolder({ path, globs, rules: above }, stats);
      this.roots.set(path, root);
      await this.walk(root, since);
    } else this.anchor(path);
  }

  private anchor(path: string): void {
    let above = dirname(path);
    while (!statOf(above)?.isDirectory() && dirname(above) !== above) above = dirname(above);
    this.anchors.get(path)?.close();
    const look = (): void => {
      // A folder on the way has appeared or disappeared, so watch the next one or the root itself.
      this.queue(async () => {
        if (this.isClosed || !this.anchors.has(path)) return;
        this.anchors.get(path)?.close();
        this.anchors.delete(path);
        if (resolveLinks(this.options.cwd).path !== this.cwd) return this.walkAgain(0);
        await this.openRoot(path, 0);
        this.tellState();
      });
    };
    const watcher = this.tryWatch(above, look);
    if (!watcher) return;
    this.anchors.set(path, watcher);
    // It may have been created before the watch.
    if (statOf(path)?.isDirectory()) look();
  }

  private tryWatch(path: string, onEvent: (name: string | null) => void): FSWatcher | null {
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => onEvent(name));
      watcher.on('error', () => watcher.close());
      return watcher;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      // Otherwise the folder is gone, or cannot be read.
      if (['ENOSPC', 'EMFILE', 'ENFILE'].includes(code)) this.refusal ??= refusalText(code, this.folders);
      return null;
    }
  }

  private openFolder(made: Pick<Folder, 'path' | 'globs' | 'rules'>, stats: Stats): Folder {
    const folder: Folder = { ...made, identity: identityOf(stats), watcher: null, children: new Map() };
    folder.watcher = this.tryWatch(made.path, (name) => this.onEvent(folder, name ?? ''));
    if (folder.watcher) this.folders += 1;
    return folder;
  }

  private drop(folder: Folder): void {
    for (const child of folder.children.values()) this.drop(child);
    if (folder.watcher) this.folders -= 1;
    folder.watcher?.close();
    folder.watcher = null;
    this.pending.delete(folder);
  }

  /** Watches everything in `top`. Files that changed after `since` are reported; null: none. */
  private async walk(top: Folder, since: number | null): Promise<void> {
    const { clock } = this.options;
    const waiting = [top];
    let began = clock.monotonic();
    for (let folder = waiting.pop(); folder && !this.isClosed; folder = waiting.pop()) {
      for (const mount of this.mounts)
        if (dirname(mount) === folder.path && !(await this.doesAnswer(mount))) this.unanswered.add(mount);
      waiting.push(...this.read(folder, since));
      if (clock.monotonic() - began < SLICE_MS) continue;
      await nextTurn();
      began = clock.monotonic();
    }
  }

  /** Reads one folder, and returns those in it that are watched too. */
  private read(folder: Folder, since: number | null): Folder[] {
    let entries: ReturnType<typeof entriesOf>;
    try {
      entries = entriesOf(folder.path);
    } catch {
      // It is gone, or cannot be read.
      return [];
    }
    const ownLines = entries.some(({ name }) => name === IGNORE_FILE) ? [rulesIn(folder.path)] : [];
    folder.rules = [...folder.rules, ...ownLines];
    const found: Folder[] = [];
    for (const entry of entries) {
      const path = join(folder.path, entry.name);
      if (this.unanswered.has(path)) continue;
      if (entry.isDirectory()) {
        const child = this.addFolder(folder, entry.name, statOf(path));
        if (child) found.push(child);
      } else if (since !== null && this.isWanted(folder, path) && (statOf(path)?.ctimeMs ?? 0) > since) {
        this.report(path);
      }
    }
    return found;
  }

  private addFolder(parent: Folder, name: string, stats: Stats | undefined): Folder | null {
    const path = join(parent.path, name);
    const { globs } = parent;
    const isPossible = globs.some(({ root, mayContain }) => mayContain(relative(root, path)));
    if (!stats || !isPossible || this.isIgnored(parent, path, true)) return null;
    if (this.isFull) {
      this.refusal ??= `it has more than ${this.folders} folders: the others are not watched. Watch less`;
      return null;
    }
    // Rules that ignore a folder re-included by others would ignore everything in it.
    const rules = parent.rules.filter((rule) => rule.verdict(path, true) !== 'ignored');
    const child = this.openFolder({ path, globs, rules }, stats);
    parent.children.set(name, child);
    return child;
  }

  private isIgnored({ rules }: Folder, path: string, isFolder: boolean): boolean {
    return isIgnored([...rules, ...(this.ownRules ? [this.ownRules] : [])], path, isFolder);
  }

  /** Whether a change of the file `path` in `folder` counts. */
  private isWanted(folder: Folder, path: string): boolean {
    const isMatch = folder.globs.some(({ root, matches }) => matches(relative(root, path)));
    return isMatch && !this.isIgnored(folder, path, false);
  }

  private onEvent(folder: Folder, name: string): void {
    const names = this.pending.get(folder) ?? new Set();
    this.pending.set(folder, names.add(name));
    this.cancelGather ??= this.options.clock.after(GATHER_MS, () => {
      this.cancelGather = null;
      this.queue(() => this.lookAtEvents());
    });
  }

  private async lookAtEvents(): Promise<void> {
    const events = this.pending;
    this.pending = new Map();
    let count = 0;
    let mustWalk = false;
    const before = this.folders;
    for (const [folder, names] of events) {
      for (const name of names) {
        if (this.isClosed) return;
        // Another event has ended its watch.
        if (folder.watcher === null) continue;
        count += 1;
        if (name === IGNORE_FILE) mustWalk = true;
        await this.lookAt(folder, name);
        if (count % 500 === 0) await nextTurn();
      }
    }
    if (mustWalk || count > MANY_EVENTS) await this.walkAgain();
    else if (before !== this.folders) this.tellState();
  }

  private async lookAt(folder: Folder, name: string): Promise<void> {
    // A folder's own events carry its name, which one of its entries may share.
    if ((name === '' || name === basename(folder.path)) && this.hasGone(folder)) return this.forget(folder);
    if (name === '') return;
    const path = join(folder.path, name);
    const stats = statOf(path);
    const known = folder.children.get(name);
    if (known && stats?.isDirectory() && identityOf(stats) === known.identity) return;
    if (known) {
      this.drop(known);
      folder.children.delete(name);
    }
    if (stats?.isDirectory()) {
      const child = this.addFolder(folder, name, stats);
      if (child) await this.walk(child, 0);
    } else if (known || this.isWanted(folder, path)) this.report(path);
  }

  private hasGone({ path, identity }: Folder): boolean {
    const stats = statOf(path);
    return !stats || identityOf(stats) !== identity;
  }

  /** The folder is no longer there. Its parent reports its end and return; nothing does so for a root. */
  private async forget(folder: Folder): Promise<void> {
    this.drop(folder);
    if (this.roots.get(folder.path) !== folder) return;
    this.roots.delete(folder.path);
    await this.openRoot(folder.path, 0);
  }

  /** A file has changed: reported after `debounceMs` without another change. */
  private report(path: string): void {
    const { clock } = this.options;
    this.changedAt ??= clock.monotonic();
    if (this.changed.size < WATCH.reportedPaths) this.changed.add(relative(this.cwd, path));
    this.reportLater(this.changedAt);
  }

  private reportLater(changedAt: number): void {
    const { clock, debounceMs, onChange } = this.options;
    const leftMs = changedAt + Math.max(debounceMs, WATCH.maxDelayMs) - clock.monotonic();
    this.cancelReport?.();
    this.cancelReport = clock.after(Math.min(debounceMs, Math.max(0, leftMs)), () => {
      // What is being read may have changed together with the first files.
      if (this.underWay > 0 && leftMs > 0) return this.reportLater(changedAt);
      this.cancelReport = null;
      const paths = [...this.changed];
      this.changed = new Set();
      this.changedAt = null;
      onChange(paths);
    });
  }
}

const entriesOf = (path: string) => readdirSync(path, { withFileTypes: true });
