// The working tree of git that a folder is in, read from git's own files: no program is run.
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { readTextFile } from '../settings/state_files.ts';

export interface WorkTree {
  /** Its top folder. */
  root: string;
  /** null: a commit is checked out, as in the middle of a rebase. */
  branch: string | null;
  /** Where the main working tree is, or would be; null: this is it. */
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

/** A bare repository has no main working tree: its name stands for one. */
function mainRootOf(common: string): string {
  const name = basename(common);
  return name.startsWith('.') ? dirname(common) : join(dirname(common), name.replace(/\.git$/, ''));
}

/** The working tree that `folder` is in; null: none, or one whose files cannot be read. */
export function workTreeOf(folder: string): WorkTree | null {
  let root = resolve(folder);
  while (!existsSync(join(root, '.git'))) {
    if (root === dirname(root)) return null;
    root = dirname(root);
  }
  const own = gitFolder(root);
  const head = own && readLine(join(own, 'HEAD'));
  if (own === null || head === null) return null;
  const [, branch] = /^ref: refs\/heads\/(.+)$/.exec(head) ?? [];
  // A linked working tree alone has this file; a submodule, whose .git is a file too, has not.
  const common = readLine(join(own, 'commondir'));
  return {
    root,
    // What stands in HEAD where the branches are not in files.
    branch: branch === undefined || branch === '.invalid' ? null : branch,
    mainRoot: common === null ? null : mainRootOf(resolve(own, common)),
  };
}

/** Where `folder` of a working tree is in the main one, so that every working tree gives the same name. */
export const folderInMain = (folder: string, { root, mainRoot }: WorkTree): string =>
  join(mainRoot ?? root, relative(root, folder));
