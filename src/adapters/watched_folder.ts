// One folder of a watched tree.
import { type FSWatcher, lstatSync, type Stats } from 'node:fs';
import type { IgnoreRules } from './ignore_rules.ts';
import type { PathGlob } from './path_globs.ts';

export interface Folder {
  path: string;
  /** Distinguishes it from another folder of the same name. */
  identity: string;
  /** The globs whose root contains it. */
  globs: readonly PathGlob[];
  /** null: the system has refused it. */
  watcher: FSWatcher | null;
  /** The rules for what is in it. */
  rules: readonly IgnoreRules[];
  children: Map<string, Folder>;
}

/** An inode number is reused as soon as its folder is removed. */
export const identityOf = ({ ino, birthtimeMs }: Stats): string => `${ino} ${birthtimeMs}`;

/** What is at `path`, without following a link; undefined: nothing, or nothing that can be reached. */
export const statOf = (path: string): Stats | undefined => {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // Part of the path is not a folder, or cannot be entered.
    return undefined;
  }
};

/** The text of a refusal by the system. */
export function refusalText(code: string, folders: number): string {
  const setting = code === 'ENOSPC' ? 'fs.inotify.max_user_watches' : 'fs.inotify.max_user_instances';
  return (
    `the system has no watch left for it (${code}): ${folders} folders are watched, the others are not. ` +
    `Raise the limit, \`sysctl ${setting}\`, or watch less`
  );
}
