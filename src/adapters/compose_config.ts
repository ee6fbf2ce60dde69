// Compose files as docker compose itself reads it, with extensions, includes and variables resolved.
import { spawnSync } from 'node:child_process';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;
/** What docker says without its compose plugin, with and without flags. */
const WITHOUT_COMPOSE = /unknown shorthand flag|is not a docker command/;

export interface ComposeReading {
  /** The files, merged, as JSON; null: docker did not read them. */
  json: string | null;
  /** Why docker compose refused the files, in one line; null: it read them, or is not installed. */
  refusal: string | null;
}

/** Reads the compose files `files` in `folder` with docker compose. */
export function composeConfig(
  folder: string,
  files: readonly string[],
  timeoutMs: number = TIMEOUT_MS,
): ComposeReading {
  const named = files.flatMap((file) => ['-f', file]);
  const args = ['compose', ...named, '--profile', '*', 'config', '--format', 'json'];
  const { status, stdout, stderr, error } = spawnSync('docker', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    // It may ignore SIGTERM.
    killSignal: 'SIGKILL',
    maxBuffer: MAX_BYTES,
  });
  if (status === 0 && stdout.trim().startsWith('{')) return { json: stdout, refusal: null };
  const isMissing = (error && 'code' in error && error.code === 'ENOENT') || WITHOUT_COMPOSE.test(stderr);
  if (isMissing) return { json: null, refusal: null };
  const lastLine = stderr?.trim().split('\n').at(-1);
  return { json: null, refusal: error?.message || lastLine || `exit code ${status}` };
}
