// Removes folders of tests, of which a process that is ending may still write a part.
import { rmSync } from 'node:fs';
import { eventually } from './eventually.ts';

/**
 * Removes a folder with everything in it. A process host outlives its daemon by a moment, and makes its own
 * folder again when that is gone.
 */
export function removeFolder(path: string): Promise<boolean> {
  return eventually(() => {
    try {
      rmSync(path, { recursive: true, force: true });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
      return false;
    }
  });
}
