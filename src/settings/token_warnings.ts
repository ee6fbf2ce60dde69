// Weaknesses of the tokens in a configuration: docs/reference.md "Tokens".
import { statSync } from 'node:fs';
import type { Settings } from './config.ts';
import { readTextFile } from './state_files.ts';

/** 128 random bits in base64url. */
const MIN_TOKEN_LENGTH = 22;

export interface TokenWarning {
  about: string;
  fix: string;
}

/** A key of a token with a value that is not empty, in TOML. */
const TOKEN_LINE = /^[^#\n]*\b(?:remote_)?token["']?\s*=\s*["']+[^"'\s]/m;

/**
 * Whether others may read the file at `path`, and it holds a token. Variables of the environment may override
 * it here, but not for a daemon that was started elsewhere.
 */
function isExposed(path: string): boolean {
  try {
    return (statSync(path).mode & 0o077) !== 0 && TOKEN_LINE.test(readTextFile(path));
  } catch {
    // No such file: the tokens are in the environment.
    return false;
  }
}

/** One entry per weakness of the tokens in `settings`, and in the file at `configPath`. */
export function tokenWarnings({ auth, cloud }: Settings, configPath: string): TokenWarning[] {
  const tokens = Object.entries({
    'auth.token': auth.token,
    'cloud.token': cloud.token,
    'cloud.remote_token': cloud.remote_token,
  }).filter(([, token]) => token !== '');
  const short = tokens
    .filter(([, token]) => token.length < MIN_TOKEN_LENGTH)
    .map(([key]) => ({
      about: `${key} has fewer than ${MIN_TOKEN_LENGTH} characters: others can find it by trying`,
      fix: 'Set a random one: openssl rand -hex 24',
    }));
  if (!isExposed(configPath)) return short;
  return [
    ...short,
    { about: `others can read ${configPath}, which holds a token`, fix: `chmod 600 ${configPath}` },
  ];
}
