// Built-in modules that a start may not need. Loading one costs a process or a thread 0.5 to 2 ms, so a
// bundle loads each at its first use.
import { createRequire } from 'node:module';

const LATER = [
  'node:child_process',
  'node:crypto',
  'node:dns/promises',
  'node:fs/promises',
  'node:http',
  'node:https',
  'node:net',
  'node:os',
  'node:querystring',
  'node:tls',
  'node:worker_threads',
];

const namesOf = (name) => Object.keys(createRequire(import.meta.url)(name));

/**
 * An esbuild plugin: replaces each module with an object that has the same exports and loads it on access.
 */
export const builtins = {
  name: 'builtins',
  setup: (build) => {
    build.onResolve({ filter: /^node:/ }, ({ path, namespace }) =>
      LATER.includes(path) && namespace !== 'builtins' ? { path, namespace: 'builtins' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'builtins' }, ({ path }) => ({
      // Cached, because each call of `require` takes a microsecond.
      contents: `let loaded;
        const load = () => (loaded ??= require('${path}'));
        for (const name of ${JSON.stringify(namesOf(path))})
          Object.defineProperty(exports, name, { enumerable: true, get: () => load()[name] });`,
    }));
  },
};
