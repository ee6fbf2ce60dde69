// The files that processes have open.
import { readdirSync, readlinkSync } from 'node:fs';
import { processTable } from './process_table.ts';

/** `root` and its descendants, of the processes that exist now. */
function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const { pid, ppid } of processTable().values()) {
    const siblings = children.get(ppid);
    if (siblings) siblings.push(pid);
    else children.set(ppid, [pid]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

function openPaths(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).map((fd) => {
      try {
        return readlinkSync(`${folder}/${fd}`);
      } catch {
        return '';
      }
    });
  } catch {
    // It has ended, or belongs to another user.
    return [];
  }
}

/**
 * The first group of `pattern` in the path of a file that `root` or one of its descendants has open; null if
 * none. If several match, the file opened last counts.
 */
export function inOpenFile(root: number, pattern: RegExp): string | null {
  for (const pid of treeOf(root))
    for (const path of openPaths(pid).reverse()) {
      const [, found] = pattern.exec(path) ?? [];
      if (found !== undefined) return found;
    }
  return null;
}
