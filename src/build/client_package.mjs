// Builds the client as a separate package, in `client-package` of the build: for Node and browsers, with
// neither dependencies nor native code. The program's package exports the same files as `/client`.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageBundles, packagesApart } from './packages.mjs';

const FOLDER = 'client-package';
/** The packages that the client for Node loads at first use: for the configuration, and for terminals. */
const PACKAGES = ['smol-toml', 'ws'];

/** The esbuild options of the client's bundles. */
export function clientBundles(shared) {
  const client = { ...shared, outdir: join(shared.outdir, FOLDER) };
  return [
    {
      ...client,
      entryPoints: { index: 'src/client/index.ts' },
      splitting: true,
      // Chunks lie beside the entry, so that each uses the same path to `packages`.
      chunkNames: '[name]-[hash]',
      plugins: [packagesApart('.')],
    },
    {
      ...client,
      entryPoints: { browser: 'src/client/browser.ts' },
      platform: 'browser',
      target: 'es2023',
    },
    packageBundles(client, PACKAGES),
  ];
}

/**
 * Writes the client's package, except its code and types, into the build in `output`. `licences`: the
 * licences of the packages whose code it contains.
 */
export function writeClientPackage(root, output, licences) {
  const { version, license, repository, engines } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const folder = join(output, FOLDER);
  const browser = { types: './browser.d.ts', default: './browser.js' };
  const manifest = {
    name: '@berth-dev/client',
    version,
    description: 'The typed client of Berth, for Node and browsers.',
    license,
    repository,
    type: 'module',
    exports: {
      '.': { browser, types: './index.d.ts', default: './index.js' },
      './browser': browser,
    },
    engines,
    sideEffects: false,
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(folder, 'THIRD_PARTY_LICENSES'), licences);
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  cpSync(join(root, 'src/client/README.md'), join(folder, 'README.md'));
}

/** The entries of the package and the files that their types are written to. */
export const CLIENT_TYPES = {
  'src/client/index.ts': `${FOLDER}/index.d.ts`,
  'src/client/browser.ts': `${FOLDER}/browser.d.ts`,
};
