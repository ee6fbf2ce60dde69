// Finds programs in PATH as a shell does.
import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';

/** Whether a shell in the directory `cwd` finds `program` in `path`, a value of PATH. */
export function isOnPath(program: string, path: string, cwd: string): boolean {
  // An empty entry is the current directory.
  return path.split(':').some((folder) => isExecutable(resolve(cwd, folder, program)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
