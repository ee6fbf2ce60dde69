// The binary of uWebSockets.js: one file per system and version of Node, which the build copies from the
// package. It runs with every right of the daemon, so only a file with a reviewed checksum is loaded.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { nativeUrl } from '../../settings/build_paths.ts';
import CHECKSUMS from './uws_binaries.json' with { type: 'json' };

type Uws = typeof import('uWebSockets.js');

/** The checksum (sha256, hexadecimal) of each file. A system without a row is served by node:http. */
const checksums: ReadonlyMap<string, string> = new Map(Object.entries(CHECKSUMS));

/**
 * Loads the binary for this system. Throws an Error whose message is the reason when there is none, when its
 * checksum is wrong, or when it does not load. `urlOf`: where a file lies.
 */
export function loadUws(urlOf: (file: string) => URL = nativeUrl): Uws {
  const { platform, arch, versions } = process;
  const file = `uws_${platform}_${arch}_${versions.modules}.node`;
  const expected = checksums.get(file);
  if (expected === undefined)
    throw new Error(`there is no binary for Node ${versions.node} on ${platform} ${arch}`);
  const path = fileURLToPath(urlOf(file));
  if (hash('sha256', readFileSync(path)) !== expected) throw new Error(`${path}: the checksum is wrong`);
  return createRequire(import.meta.url)(path);
}
