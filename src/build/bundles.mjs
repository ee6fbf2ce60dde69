// The output of the build: one bundle per entry. Packages stay external when they are native or loaded only
// at first use.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { builtins } from './builtins.mjs';
import { natives } from './natives.mjs';

/**
 * Pure packages that a command or a daemon needs at every start. As separate files, each costs some 10 ms.
 */
const INLINED = ['comlink', 'commander', 'eventsource-parser', 'lmdb', 'msgpackr'];

/**
 * The program is CommonJS: starting Node's module loader costs a process or thread 5 ms, and each file loaded
 * through it half a millisecond. Each entry is one file with all its dependencies, loaded on demand.
 */
const COMMAND = {
  bin: 'src/bin.ts',
  'cli/main': 'src/cli/main.ts',
  'cli/parser': 'src/cli/kit/parser.ts',
  'cli/more': 'src/cli/lazy_commands.ts',
  'cli/project': 'src/cli/project_commands.ts',
};
const DAEMON = {
  daemon: 'src/daemon/main.ts',
  'workers/services': 'workers/services.ts',
  'workers/cloud': 'workers/cloud.ts',
  'workers/tethers': 'workers/tethers.ts',
  'workers/gateway': 'workers/gateway.ts',
  'workers/host': 'workers/host.ts',
  'workers/jobs': 'workers/jobs.ts',
};
/** Loaded when a request first needs it: one file with the packages that nothing else includes. */
const SCHEMAS = { file: 'schemas', source: 'src/api/shapes.ts', with: ['zod', 'zod-openapi'] };
/**
 * The files that others import are ES modules. So are the benches, which an installed package does not have.
 */
const MODULES = {
  client: 'src/client/index.ts',
  bench: 'bench/run.ts',
  'bench-bare': 'bench/kit/bare_process.ts',
};

/** Keeps a part of the command that another part, or the daemon, loads in a file of its own. */
const partsApart = {
  name: 'parts-apart',
  setup: (build) =>
    build.onResolve({ filter: /\.ts$/ }, ({ kind, path, importer, resolveDir }) => {
      if (kind !== 'dynamic-import') return undefined;
      const { absWorkingDir } = build.initialOptions;
      const name = (file) => relative(absWorkingDir, file);
      const wanted = name(resolve(resolveDir, path));
      const files = { ...COMMAND, daemon: DAEMON.daemon };
      const part = Object.keys(files).find((key) => files[key] === wanted);
      // Only `bin` is outside the folder of the others.
      const folder = name(importer) === COMMAND.bin ? '.' : 'cli';
      return part && { path: `./${relative(folder, part)}.cjs`, external: true };
    }),
};

const schemasApart = {
  name: 'schemas-apart',
  setup: (build) =>
    build.onResolve({ filter: /\/shapes\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: `./${SCHEMAS.file}.cjs`, external: true } : undefined,
    ),
};

/** The messages in fifty languages are half of the file. English is included without them. */
const noLocales = {
  name: 'no-locales',
  setup: (build) => {
    build.onResolve({ filter: /\/locales\/index\.js$/ }, () => ({ path: 'locales', namespace: 'none' }));
    build.onLoad({ filter: /./, namespace: 'none' }, () => ({ contents: 'export {};' }));
  },
};

function programs(shared) {
  const common = {
    ...shared,
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    // Turns `import()` into `require()`, which needs no module loader.
    supported: { 'dynamic-import': false },
  };
  const command = {
    ...common,
    entryPoints: COMMAND,
    define: { ...shared.define, 'import.meta.dirname': '__dirname' },
    minifyWhitespace: true,
    minifySyntax: true,
    plugins: [partsApart],
  };
  const daemon = {
    ...common,
    entryPoints: DAEMON,
    external: [
      ...shared.external.filter((name) => name !== 'koffi' && name !== 'undici'),
      'msgpackr-extract',
    ],
    plugins: [schemasApart, natives, builtins],
    define: {
      ...shared.define,
      'import.meta.url': 'berthFile',
      // The native part of msgpackr is faster only with hundreds of strings in one message, and costs every
      // start 9 ms.
      'process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED': '"true"',
    },
    banner: { js: "const berthFile = require('node:url').pathToFileURL(__filename).href;" },
  };
  const schemas = {
    ...common,
    entryPoints: { [SCHEMAS.file]: SCHEMAS.source },
    plugins: [noLocales],
    external: shared.external.filter((name) => !SCHEMAS.with.includes(name)),
  };
  return [command, daemon, schemas];
}

/** The esbuild options of every bundle, for `build.mjs`. */
export function bundles(root, output) {
  const { version, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const shared = {
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'warning',
    define: { BERTH_VERSION: JSON.stringify(version) },
    external: Object.keys(dependencies).filter((name) => !INLINED.includes(name)),
    outdir: output,
    legalComments: 'none',
  };
  const there = Object.entries(MODULES).filter(([, source]) => existsSync(join(root, source)));
  const modules = {
    ...shared,
    // Only the plugin of the daemon's bundles finds its binary.
    external: [...shared.external, 'lmdb'],
    entryPoints: Object.fromEntries(there),
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
  };
  const browser = {
    ...shared,
    entryPoints: { 'client-browser': 'src/client/browser.ts' },
    platform: 'browser',
    target: 'es2023',
    external: [],
  };
  const dashboard = {
    ...browser,
    entryPoints: {
      index: 'src/dashboard/index.html',
      style: 'src/dashboard/style.css',
      page: 'src/dashboard/page.ts',
    },
    outdir: join(output, 'dashboard'),
    loader: { '.html': 'copy' },
    minify: true,
  };
  return [...programs(shared), modules, browser, dashboard];
}
