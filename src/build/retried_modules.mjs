// Lets a module that a bundle loads on demand be loaded again after a failure: a package beside the bundle may
// be missing while npm installs an update. esbuild keeps the failure, as the specification of modules asks.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const HELPER = `var __esm = (fn, res, err) => function __init() {
  if (err) throw err[0];
  try {
    return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
  } catch (e) {
    throw err = [e], e;
  }
};`;

const RETRYING = `var __esm = (fn, res) => function __init() {
  const body = fn;
  try {
    return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
  } catch (e) {
    throw fn = body, e;
  }
};`;

/** An esbuild plugin, for bundles that are not minified. */
export const retriedModules = {
  name: 'retried-modules',
  setup: (build) =>
    build.onEnd(({ metafile, errors }) => {
      if (errors.length > 0) return;
      for (const output of Object.keys(metafile.outputs)) {
        const path = join(build.initialOptions.absWorkingDir, output);
        const code = readFileSync(path, 'utf8');
        if (!code.includes('var __esm =')) continue;
        if (!code.includes(HELPER)) throw new Error(`${output}: esbuild loads modules in another way`);
        writeFileSync(path, code.replace(HELPER, RETRYING));
      }
    }),
};
