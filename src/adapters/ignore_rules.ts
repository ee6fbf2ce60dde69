// The lines of a .gitignore, as git reads them. The only file that imports ignore.
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ignore, { type Ignore } from 'ignore';
import { hasManyGlobstars } from '../protocol/globs.ts';
import { readTextFile } from '../settings/state_files.ts';

export const IGNORE_FILE = '.gitignore';

/** The package caches every path it has checked, so it is recreated after this many. */
const MAX_REMEMBERED = 20_000;

/** The lines of one file, for the paths below the folder of that file. */
export class IgnoreRules {
  private readonly folder: string;
  private readonly lines: readonly string[];
  private rules: Ignore;
  private asked = 0;

  constructor(folder: string, lines: string) {
    this.folder = folder;
    // A hostile line could keep the matcher busy for hours.
    this.lines = lines.split(/\r?\n/).filter((line) => !hasManyGlobstars(line));
    this.rules = ignore().add(this.lines);
  }

  /** Whether these lines ignore the absolute `path`, re-include it, or say nothing about it. */
  verdict(path: string, isFolder: boolean): 'ignored' | 'kept' | null {
    const inner = relative(this.folder, path);
    if (inner === '' || inner.startsWith('..')) return null;
    this.asked += 1;
    if (this.asked > MAX_REMEMBERED) {
      this.rules = ignore().add(this.lines);
      this.asked = 0;
    }
    const { ignored, unignored } = this.rules.test(isFolder ? `${inner}/` : inner);
    if (ignored) return 'ignored';
    return unignored ? 'kept' : null;
  }
}

/** Whether a path is ignored by `rules`. The last rule that has an opinion wins. */
export function isIgnored(rules: readonly IgnoreRules[], path: string, isFolder: boolean): boolean {
  for (const one of rules.toReversed()) {
    const verdict = one.verdict(path, isFolder);
    if (verdict !== null) return verdict === 'ignored';
  }
  return false;
}

/** The rules of the ignore file in `folder`; without one that can be read, none. */
export function rulesIn(folder: string): IgnoreRules {
  try {
    return new IgnoreRules(folder, readTextFile(join(folder, IGNORE_FILE)));
  } catch {
    return new IgnoreRules(folder, '');
  }
}

/** The rules of every ignore file from the folder of the repository down to above `root`. */
export function rulesAbove(root: string): IgnoreRules[] {
  const folders: string[] = [];
  for (let folder = root; !existsSync(join(folder, '.git')); folder = dirname(folder)) {
    if (dirname(folder) === folder) return [];
    folders.unshift(dirname(folder));
  }
  return folders.map(rulesIn);
}
