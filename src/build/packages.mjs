// Packages that a program loads only when it needs them. Each is bundled into one file in `packages`, and npm
// does not install it. A separate file costs a start nothing, and its first use one call of `require`.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { natives } from './natives.mjs';

const FOLDER = 'packages';

const PACKAGES = [
  '@xterm/addon-serialize',
  '@xterm/headless',
  'croner',
  'jsonc-parser',
  'node-pty',
  'ignore',
  'jose',
  'oauth4webapi',
  'pg',
  'picomatch',
  'pidusage',
  'piscina',
  're2js',
  'smol-toml',
  'ws',
  'yaml',
  'zod',
];

/** Other entries for packages whose own entry loads its parts in a way that the bundler cannot follow. */
const ENTRIES = { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' };

/**
 * The name says that a file is CommonJS: while npm installs an update, a `package.json` beside it may be
 * missing.
 */
const EXTENSION = '.cjs';

const fileOf = (name) => `${FOLDER}/${name.replace(/^@/, '').replace('/', '-')}`;

/** Leaves out zod's messages in fifty languages, half of its code. zod includes English without them. */
export const noLocales = {
  name: 'no-locales',
  setup: (build) => {
    build.onResolve({ filter: /\/locales\/index\.js$/ }, () => ({ path: 'locales', namespace: 'none' }));
    build.onLoad({ filter: /./, namespace: 'none' }, () => ({ contents: 'export {};' }));
  },
};

/**
 * Leaves out the JSON Schema validator of the Model Context Protocol's package, a third of its code. It
 * validates what clients answer to a server's requests, and Berth sends none.
 */
export const noClientAnswers = {
  name: 'no-client-answers',
  setup: (build) => {
    build.onResolve({ filter: /^@modelcontextprotocol\/server\/_shims$/ }, () => ({
      path: 'shims',
      namespace: 'no-client-answers',
    }));
    build.onLoad({ filter: /./, namespace: 'no-client-answers' }, () => ({
      contents: `export { default as process } from 'node:process';
        export class DefaultJsonSchemaValidator {}`,
    }));
  },
};

/** Leaves out the native part that pg looks for and Berth does not use. */
const noNativePg = {
  name: 'no-native-pg',
  setup: (build) => {
    build.onResolve({ filter: /^pg-native$/ }, () => ({ path: 'pg-native', namespace: 'no-native-pg' }));
    build.onLoad({ filter: /^pg-native$/, namespace: 'no-native-pg' }, () => ({
      contents: 'module.exports = {};',
    }));
  },
};

/** The file that piscina's threads begin with has the extension of the others. */
const piscinaEntry = {
  name: 'piscina-entry',
  setup: (build) =>
    build.onLoad({ filter: /node_modules.piscina.dist.index\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace("'worker.js'", `'worker${EXTENSION}'`),
    })),
};

/** Other names under which third-party packages import a package. */
const ALIASES = { 'zod/v4': 'zod' };

/** An esbuild plugin: bundles in `folder` of the build load the packages `names` from `packages`. */
export const packagesApart = (folder, names = PACKAGES) => ({
  name: 'packages-apart',
  setup: (build) =>
    build.onResolve({ filter: /^[@a-z]/ }, ({ path: asked }) => {
      const path = ALIASES[asked] ?? asked;
      if (!names.includes(path)) return undefined;
      const file = posix.relative(folder, `${fileOf(path)}${EXTENSION}`);
      return { path: file.startsWith('.') ? file : `./${file}`, external: true };
    }),
});

/** The esbuild options that bundle the packages `names` into files in `packages`. */
export const packageBundles = (shared, names = PACKAGES) => ({
  ...shared,
  format: 'cjs',
  outExtension: { '.js': EXTENSION },
  entryPoints: {
    ...Object.fromEntries(names.map((name) => [fileOf(name), ENTRIES[name] ?? name])),
    // The entry of piscina's threads: piscina looks for it beside itself.
    ...(names.includes('piscina') ? { [`${FOLDER}/worker`]: 'node_modules/piscina/dist/worker.js' } : {}),
  },
  minifyWhitespace: true,
  minifySyntax: true,
  // Optional parts that Berth does not use.
  external: ['@napi-rs/nice', 'bufferutil', 'utf-8-validate'],
  plugins: [noNativePg, noLocales, natives, piscinaEntry],
});
