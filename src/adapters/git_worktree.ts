// The git working tree that contains a folder, read from git's own files without running a program.
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { readTextFile } from '../settings/state_files.ts';

export interface WorkTree {
  /** Its top folder. */
  root: string;
  /** null: a commit is checked out, as in the middle of a rebase. */
  branch: string | null;
  /** The folder of the main working tree; null: this is it. */
  mainRoot: string | null;
}

function readLine(path: string): string | null {
  try {
    return readTextFile(path).trim();
  } catch {
    return null;
  }
}

/** The folder of git's own files for the working tree at `root`; null: there is none. */
function gitFolder(root: string): string | null {
  const path = join(root, '.git');
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  const [, named] = /^gitdir: (.+)$/m.exec(readLine(path) ?? '') ?? [];
  return named === undefined ? null : resolve(root, named);
}

/** A bare repository has no main working tree, so its name stands in for one. */
function mainRootOf(common: string): string {
  const name = basename(common);
  return name.startsWith('.') ? dirname(common) : join(dirname(common), name.replace(/\.git$/, ''));
}

/**
 * The linked working tree at `root`, whose main one was moved: the folder `own`, which git names, is gone.
 * Its path still names the main one, as until `git worktree repair`. null: it is no linked one.
 */
function orphanAt(root: string, own: string): WorkTree | null {
  const all = dirname(own);
  if (basename(all) !== 'worktrees') return null;
  return { root, branch: null, mainRoot: mainRootOf(dirname(all)) };
}

/** The working tree that `folder` is in; null: none, or one whose files cannot be read. */
export function workTreeOf(folder: string): WorkTree | null {
  let root = resolve(folder);
  while (!existsSync(join(root, '.git'))) {
    if (root === dirname(root)) return null;
    root = dirname(root);
  }
  const own = gitFolder(root);
  if (own === null) return null;
  const head = readLine(join(own, 'HEAD'));
  if (head === null) return orphanAt(root, own);
  const [, branch] = /^ref: refs\/heads\/(.+)$/.exec(head) ?? [];
  // Only a linked working tree has this file. A submodule, whose .git is also a file, does not.
  const common = readLine(join(own, 'commondir'));
  return {
    root,
    // `.invalid` is what HEAD contains when refs are not stored as files.
    branch: branch === undefined || branch === '.invalid' ? null : branch,
    mainRoot: common === null ? null : mainRootOf(resolve(own, common)),
  };
}

/** The corresponding folder in the main working tree, so that every working tree gives the same name. */
export const folderInMain = (folder: string, { root, mainRoot }: WorkTree): string =>
  join(mainRoot ?? root, relative(root, folder));
