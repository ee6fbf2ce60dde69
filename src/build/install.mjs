// Decides whether the locked packages must be installed. Uses built-in modules only, because it runs before
// anything is installed.
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const packagesIn = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {});

/** Whether the installed packages belong to another tree: installing would remove packages that it uses. */
export const isLinked = (root) =>
  lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink() === true;

/**
 * Whether a package of the lock file is missing or has another version. Ignores optional packages: they may
 * be for other systems, or npm has left them out. Compares contents, because switching branches changes the
 * time of a file.
 */
export function needsInstall(root) {
  const installed = packagesIn(join(root, 'node_modules/.package-lock.json'));
  return Object.entries(packagesIn(join(root, 'package-lock.json'))).some(
    ([path, { version, optional }]) => path !== '' && !optional && installed[path]?.version !== version,
  );
}
