// The limit on open descriptors of this process, and how many it has.
import { closeSync, openSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { DESCRIPTORS } from '../../settings/limits.ts';

/** The limit; without one, or where it cannot be read, `Number.POSITIVE_INFINITY`. */
export function openFilesLimit(): number {
  let text: string;
  try {
    text = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // Not Linux.
    return Number.POSITIVE_INFINITY;
  }
  const soft = /^Max open files\s+(\d+)/m.exec(text)?.[1];
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
}

/** Why a daemon with this process's limits could not serve; null: it could. */
export function openFilesTrouble(): string | null {
  const most = openFilesLimit();
  if (most >= DESCRIPTORS.min) return null;
  return `the limit of open files is ${most}, and the daemon needs ${DESCRIPTORS.min}: raise it with \`ulimit -n 1024\``;
}

/** Read once per thread. */
let limit: number | null = null;

/**
 * Whether at least `share` of this process's allowed descriptors are in use. A new descriptor gets the lowest
 * free number, so opening one tells.
 */
export function areDescriptorsUsed(share: number): boolean {
  limit ??= openFilesLimit();
  if (!Number.isFinite(limit)) return false;
  try {
    const lowestFree = openSync(devNull, 'r');
    closeSync(lowestFree);
    return lowestFree >= limit * share;
  } catch {
    return true;
  }
}
