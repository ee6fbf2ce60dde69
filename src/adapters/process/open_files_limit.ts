// How many descriptors this process may have open.
import { readFileSync } from 'node:fs';

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
