// Modules of Node that a start may do without: each costs a process or a thread 0.5 to 2 ms, so a bundle
// loads one when it is first used and not because something in it might.
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

/** For esbuild: each of them becomes an object that has its names, and its values when they are asked for. */
export const builtins = {
  name: 'builtins',
  setup: (build) => {
    build.onResolve({ filter: /^node:/ }, ({ path, namespace }) =>
      LATER.includes(path) && namespace !== 'builtins' ? { path, namespace: 'builtins' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'builtins' }, ({ path }) => ({
      // Kept once it is there: to ask `require` for it takes a microsecond, each time.
      contents: `let loaded;
        const load = () => (loaded ??= require('${path}'));
        for (const name of ${JSON.stringify(namesOf(path))})
          Object.defineProperty(exports, name, { enumerable: true, get: () => load()[name] });`,
    }));
  },
};
