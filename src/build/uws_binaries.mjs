// The binaries of uWebSockets.js. Its package contains 54 of them, 257 MB; the build copies only those with a
// listed checksum, one per supported system and version of Node.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = 'natives';

/** Copies the binaries into the build in `output`. Throws if one differs from the reviewed binary. */
export function copyBinaries(root, output) {
  const table = JSON.parse(readFileSync(join(root, 'src/front/server/uws_binaries.json'), 'utf8'));
  mkdirSync(join(output, FOLDER));
  for (const [file, checksum] of Object.entries(table)) {
    const bytes = readFileSync(join(root, 'node_modules/uWebSockets.js', file));
    const found = createHash('sha256').update(bytes).digest('hex');
    if (found !== checksum) throw new Error(`${file}: its checksum is ${found}, not ${checksum}`);
    writeFileSync(join(output, FOLDER, file), bytes);
  }
}
