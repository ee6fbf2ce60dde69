// Finds the project file of a folder.
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export const PROJECT_FILE_NAMES = ['berth.yaml', 'berth.yml'] as const;

/** The project file of `folder` or of its nearest parent with one; undefined without one. */
export function findProjectFile(folder: string): string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = PROJECT_FILE_NAMES.map((name) => join(at, name)).find((path) => existsSync(path));
    if (found !== undefined || at === dirname(at)) return found;
  }
}
