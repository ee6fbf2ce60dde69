// Packages with a binary search a dozen files for it at each start, which costs a process or thread 5 to 8
// ms. On Linux with glibc its name is known. On other systems, and when it does not load, the package's own
// search runs as usual.
import { join } from 'node:path';

/** Resolves from the folder of a bundle, as the package itself would. */
const FROM = (name) => `
  const { createRequire } = require('node:module');
  const bundled = createRequire(__filename);
  const from = createRequire(bundled.resolve('${name}'));
  const { arch, platform, versions } = process;`;

const KOFFI = `${FROM('koffi')}
  const name = \`\${platform}-\${arch}\`;
  try {
    module.exports = from(\`@koromix/koffi-\${name}/\${platform}_\${arch}/koffi.node\`);
  } catch {
    module.exports = bundled('koffi');
  }`;

const LMDB = `${FROM('lmdb')}
  const { dirname } = require('node:path');
  module.exports = () => {
    try {
      return from(\`@lmdb/lmdb-\${platform}-\${arch}/node.abi\${versions.modules}.glibc.node\`);
    } catch {
      return from('node-gyp-build-optional-packages')(dirname(dirname(bundled.resolve('lmdb'))));
    }
  };`;

const CONTENTS = {
  koffi: KOFFI,
  'node-gyp-build-optional-packages': LMDB,
  // The rows of the store are bytes: lmdb never uses its own msgpack.
  msgpackr: 'exports.Encoder = null;',
};

const isOfLmdb = (importer) => /node_modules.lmdb.dist.index\.cjs$/.test(importer);

/** An esbuild plugin. */
export const natives = {
  name: 'natives',
  setup: (build) => {
    const { absWorkingDir } = build.initialOptions;
    // The file that `require` resolves to, which is the one its authors have built and tested.
    build.onResolve({ filter: /^lmdb$/ }, () => ({
      path: join(absWorkingDir, 'node_modules/lmdb/dist/index.cjs'),
    }));
    build.onResolve(
      { filter: /^(koffi|msgpackr|node-gyp-build-optional-packages)$/ },
      ({ path, importer }) =>
        path === 'koffi' || isOfLmdb(importer) ? { path, namespace: 'natives' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'natives' }, ({ path }) => ({ contents: CONTENTS[path] }));
  },
};
