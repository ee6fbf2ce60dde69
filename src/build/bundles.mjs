// The bundles of the build: one per entry, with the packages that every start needs. Code that loads later is
// in separate files.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { builtins } from './builtins.mjs';
import { clientBundles } from './client_package.mjs';
import { natives } from './natives.mjs';
import { noClientAnswers, noLocales, packageBundles, packagesApart } from './packages.mjs';
import { retriedModules } from './retried_modules.mjs';

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
  'cli/project_name': 'src/cli/kit/project_name.ts',
  'cli/ui': 'src/cli/ui/start_ui.ts',
  'cli/clusters': 'src/cli/cluster_commands.ts',
  'cli/mcp': 'src/mcp/stdio.ts',
  'cli/tether': 'src/actors/tethers/foreground_tether.ts',
};
const DAEMON = { daemon: 'src/daemon/main.ts' };
const WORKERS = {
  'workers/services': 'workers/services.ts',
  'workers/doors': 'workers/doors.ts',
  'workers/gateway': 'workers/gateway.ts',
  'workers/watcher': 'workers/watcher.ts',
  'workers/host': 'workers/host.ts',
  'workers/jobs': 'workers/jobs.ts',
};
/** Mostly code of packages, whose comments and indentation would take half a megabyte of an installation. */
const MOSTLY_PACKAGES = {
  'workers/cloud': 'workers/cloud.ts',
  'workers/clusters': 'workers/clusters.ts',
  'workers/tethers': 'workers/tethers.ts',
  'workers/mcp': 'workers/mcp.ts',
  'workers/store_check': 'workers/store_check.ts',
};
/** Loaded when a request first needs it. */
const SCHEMAS = { file: 'schemas', source: 'src/api/schemas.ts' };
/** Not in an installed package: the benches run in the source tree, whose packages they need. */
const BENCHES = { bench: 'bench/run.ts', 'bench-bare': 'bench/kit/bare_process.ts' };

/** Keeps each part of the command that another part loads on demand, and the daemon, in a separate file. */
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
    build.onResolve({ filter: /\/schemas\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: `./${SCHEMAS.file}.cjs`, external: true } : undefined,
    ),
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
    plugins: [partsApart, packagesApart('cli'), natives, noClientAnswers],
  };
  const daemon = {
    ...common,
    external: ['msgpackr-extract'],
    define: {
      ...shared.define,
      'import.meta.url': 'berthFile',
      // The native part of msgpackr is faster only with hundreds of strings in one message, and costs every
      // start 9 ms.
      'process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED': '"true"',
    },
    banner: { js: "const berthFile = require('node:url').pathToFileURL(__filename).href;" },
  };
  const plugins = [schemasApart, natives, builtins, noClientAnswers, retriedModules];
  return [
    command,
    { ...daemon, entryPoints: DAEMON, plugins: [packagesApart('.'), ...plugins] },
    { ...daemon, entryPoints: WORKERS, plugins: [packagesApart('workers'), ...plugins] },
    {
      ...daemon,
      entryPoints: MOSTLY_PACKAGES,
      minifyWhitespace: true,
      plugins: [packagesApart('workers'), ...plugins],
    },
    {
      ...common,
      entryPoints: { [SCHEMAS.file]: SCHEMAS.source },
      plugins: [packagesApart('.', ['re2js']), noLocales, retriedModules],
    },
    packageBundles(shared),
  ];
}

/** Parts of the page that load when they are first shown. They share no code with the page. */
const PAGE_PARTS = {
  terminal: 'src/dashboard/parts/terminal.ts',
  chart: 'src/dashboard/parts/chart.ts',
};

/** Keeps each part of the page that loads on demand in a separate file, with a name that the daemon knows. */
const pagePartsApart = {
  name: 'page-parts-apart',
  setup: (build) =>
    build.onResolve({ filter: /\/parts\/\w+\.ts$/ }, ({ kind, path }) => {
      const part = Object.keys(PAGE_PARTS).find((key) => path.endsWith(`/parts/${key}.ts`));
      return kind === 'dynamic-import' && part ? { path: `./${part}.js`, external: true } : undefined;
    }),
};

function dashboard(shared, output) {
  return {
    ...shared,
    platform: 'browser',
    target: 'es2023',
    entryPoints: {
      index: 'src/dashboard/index.html',
      style: 'src/dashboard/style/style.css',
      page: 'src/dashboard/page.tsx',
      ...PAGE_PARTS,
    },
    outdir: join(output, 'dashboard'),
    loader: { '.html': 'copy' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [pagePartsApart],
    minify: true,
  };
}

/** The esbuild options of every bundle, for `build.mjs`. The benches are not part of the package. */
export function bundles(root, output) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const shared = {
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'warning',
    define: { BERTH_VERSION: JSON.stringify(version) },
    outdir: output,
    legalComments: 'none',
    metafile: true,
  };
  const benches = {
    ...shared,
    entryPoints: BENCHES,
    packages: 'external',
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
  };
  return {
    program: [...programs(shared), dashboard(shared, output)],
    client: clientBundles(shared),
    benches: existsSync(join(root, BENCHES.bench)) ? [benches] : [],
  };
}
