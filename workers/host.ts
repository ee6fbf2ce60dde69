// The process host's entry: `node host.cjs <state directory>`.
import { startHost } from '../src/host/main.ts';
import { VERSION } from '../src/version.ts';

const [, , stateDir] = process.argv;
if (stateDir === undefined) throw new Error('usage: host <state directory>');
startHost({ stateDir, version: VERSION }).catch((error) => {
  // A host that could not begin must not keep the place of one that can.
  console.error(error);
  process.exit(1);
});
