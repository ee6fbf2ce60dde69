// A compose file as docker compose itself reads it, with extensions, includes and variables resolved.
import { spawnSync } from 'node:child_process';
import { basename, dirname } from 'node:path';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;

/** The compose file at `path` as JSON; null where docker compose is not installed or refuses the file. */
export function composeConfig(path: string): string | null {
  const args = ['compose', '-f', basename(path), '--profile', '*', 'config', '--format', 'json'];
  const { status, stdout } = spawnSync('docker', args, {
    cwd: dirname(path),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_BYTES,
  });
  return status === 0 && stdout.trim().startsWith('{') ? stdout : null;
}
