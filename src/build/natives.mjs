// Packages with a binary. Their JavaScript is part of the build; the binary itself comes from a separate
// package per system, which npm chooses (`optionalDependencies`). The packages would look for it in a dozen
// files at each start, which costs a process or thread 5 to 8 ms; the build replaces that search with the
// known name.
import { join } from 'node:path';

const SYSTEM = '${process.platform}-${process.arch}';

const KOFFI = `
  const { platform, arch } = process;
  try {
    module.exports = require(\`@koromix/koffi-${SYSTEM}/\${platform}_\${arch}/koffi.node\`);
  } catch {
    // Another libc: the package of the system knows which of its files fits.
    module.exports = require(\`@koromix/koffi-${SYSTEM}\`);
  }`;

/** Tries the best first: for this V8, then for any; for glibc, musl, then systems with one libc. */
const LMDB = `
  const abi = \`abi\${process.versions.modules}\`;
  const names = [\`\${abi}.glibc\`, 'napi.glibc', 'napi.musl', abi, 'napi'];
  module.exports = () => {
    let reason;
    for (const name of names) {
      try {
        return require(\`@lmdb/lmdb-${SYSTEM}/node.\${name}.node\`);
      } catch (error) {
        // What matters is why a file that is there does not load.
        if (!reason || error.code !== 'MODULE_NOT_FOUND') reason = error;
      }
    }
    const advice = 'install Berth again on this machine, with its optional packages';
    const text = \`@lmdb/lmdb-${SYSTEM} is missing or does not load: \${advice}\`;
    throw Object.assign(new Error(text, { cause: reason }), { code: 'ERR_PACKAGE_MISSING' });
  };`;

const PTY = `exports.requireBinary = (file) => require(\`@lydell/node-pty-${SYSTEM}/\${file}\`);`;

const CONTENTS = {
  koffi: KOFFI,
  'node-gyp-build-optional-packages': LMDB,
  // The rows of the store are bytes, so lmdb never uses its own msgpack.
  msgpackr: 'exports.Encoder = null;',
  './requireBinary': PTY,
  './windowsTerminal': '',
};

const IMPORTERS = {
  koffi: /./,
  'node-gyp-build-optional-packages': /node_modules.lmdb.dist.index\.cjs$/,
  msgpackr: /node_modules.lmdb.dist.index\.cjs$/,
  './requireBinary': /node_modules.node-pty./,
  './windowsTerminal': /node_modules.node-pty./,
};

/** An esbuild plugin. */
export const natives = {
  name: 'natives',
  setup: (build) => {
    const { absWorkingDir } = build.initialOptions;
    // The file that `require` resolves to: the authors of lmdb build and test that one.
    build.onResolve({ filter: /^lmdb$/ }, () => ({
      path: join(absWorkingDir, 'node_modules/lmdb/dist/index.cjs'),
    }));
    build.onResolve({ filter: /^[^/]+$|^\.\/\w+$/ }, ({ path, importer }) =>
      IMPORTERS[path]?.test(importer) ? { path, namespace: 'natives' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'natives' }, ({ path }) => ({ contents: CONTENTS[path] }));
  },
};
