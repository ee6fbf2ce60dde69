// Compose files as docker compose itself reads it, with extensions, includes and variables resolved.
import { spawnSync } from 'node:child_process';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * The compose files `files` in `folder`, merged, as JSON; null where docker compose is not installed or
 * refuses them.
 */
export function composeConfig(folder: string, files: readonly string[]): string | null {
  const named = files.flatMap((file) => ['-f', file]);
  const args = ['compose', ...named, '--profile', '*', 'config', '--format', 'json'];
  const { status, stdout } = spawnSync('docker', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_BYTES,
  });
  return status === 0 && stdout.trim().startsWith('{') ? stdout : null;
}
