// Packages that a program loads only when it needs them: one file each in `packages`, instead of a package
// that npm would install. As separate files they cost a start nothing, and one call of `require` later.
import { writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
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

/** The entry of a package whose own one loads its parts in a way that no bundle can follow. */
const ENTRIES = { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' };

const fileOf = (name) => `${FOLDER}/${name.replace(/^@/, '').replace('/', '-')}`;

/** The messages of zod in fifty languages are half of its code. English is included without them. */
export const noLocales = {
  name: 'no-locales',
  setup: (build) => {
    build.onResolve({ filter: /\/locales\/index\.js$/ }, () => ({ path: 'locales', namespace: 'none' }));
    build.onLoad({ filter: /./, namespace: 'none' }, () => ({ contents: 'export {};' }));
  },
};

/**
 * The Model Context Protocol's package brings a validator of JSON Schema, a third of its code, for what
 * servers ask of clients. Berth asks nothing.
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

/** pg looks for a native part that Berth does not use. */
const noNativePg = {
  name: 'no-native-pg',
  setup: (build) => {
    build.onResolve({ filter: /^pg-native$/ }, () => ({ path: 'pg-native', namespace: 'no-native-pg' }));
    build.onLoad({ filter: /^pg-native$/, namespace: 'no-native-pg' }, () => ({
      contents: 'module.exports = {};',
    }));
  },
};

/** Another name of a package, under which packages of others import it. */
const ALIASES = { 'zod/v4': 'zod' };

/** An esbuild plugin for bundles in `folder` of the build: they load `names` from `packages`. */
export const packagesApart = (folder, names = PACKAGES) => ({
  name: 'packages-apart',
  setup: (build) =>
    build.onResolve({ filter: /^[@a-z]/ }, ({ path: asked }) => {
      const path = ALIASES[asked] ?? asked;
      if (!names.includes(path)) return undefined;
      const file = posix.relative(folder, `${fileOf(path)}.js`);
      return { path: file.startsWith('.') ? file : `./${file}`, external: true };
    }),
});

/** The esbuild options of the files in `packages`; `names`: those wanted. */
export const packageBundles = (shared, names = PACKAGES) => ({
  ...shared,
  format: 'cjs',
  entryPoints: {
    ...Object.fromEntries(names.map((name) => [fileOf(name), ENTRIES[name] ?? name])),
    // The thread of piscina, which it looks for beside itself.
    ...(names.includes('piscina') ? { [`${FOLDER}/worker`]: 'node_modules/piscina/dist/worker.js' } : {}),
  },
  minifyWhitespace: true,
  minifySyntax: true,
  // Optional parts that Berth does not use.
  external: ['@napi-rs/nice', 'bufferutil', 'utf-8-validate'],
  plugins: [noNativePg, noLocales, natives],
});

/** Marks the files of `packages` below `output` as CommonJS, unlike the package around it. */
export const writePackagesManifest = (output) =>
  writeFileSync(join(output, FOLDER, 'package.json'), '{"type":"commonjs"}\n');
