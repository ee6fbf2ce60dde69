// Finds the project file of a folder.
import { existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export const PROJECT_FILE_NAMES = ['berth.yaml', 'berth.yml'] as const;

const ROOT_UID = 0;
/** A system without user ids has no other users either. */
const ownUid = (): number => process.getuid?.() ?? ROOT_UID;

/** undefined: there is nothing at `path`, or nothing that this user can see. */
function statsOf(path: string, read: (path: string) => Stats): Stats | undefined {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}

/**
 * The path of a project file without symbolic links in its folder, as far as that exists. A file that is a
 * link belongs to the folder of the link: docs/reference.md "Stacks".
 */
export function realProjectFile(path: string): string {
  const full = resolve(path);
  const folder = dirname(full);
  return existsSync(folder) ? join(realpathSync(folder), full.slice(folder.length)) : full;
}

export interface ProjectFileSearch {
  /** undefined: there is none. */
  found: string | undefined;
  /** The nearer files that are not used, because they belong to other users. */
  ignored: readonly string[];
}

/**
 * Finds the project file of `folder`, or of its nearest parent with one. A file of a parent must belong to
 * the user, to root or to the owner of `folder`, or other users could have their commands run:
 * docs/reference.md "Stacks".
 */
export function findProjectFile(folder: string): ProjectFileSearch {
  const start = resolve(folder);
  const trusted = new Set([ROOT_UID, ownUid(), statsOf(start, statSync)?.uid]);
  const isTrusted = (stats: Stats | undefined): boolean => trusted.has(stats?.uid);
  const ignored: string[] = [];
  for (let at = start; ; at = dirname(at)) {
    for (const path of PROJECT_FILE_NAMES.map((name) => join(at, name))) {
      const file = statsOf(path, statSync);
      if (!file) continue;
      if (at === start || (isTrusted(file) && isTrusted(statsOf(path, lstatSync))))
        return { found: path, ignored };
      ignored.push(path);
    }
    if (at === dirname(at)) return { found: undefined, ignored };
  }
}
