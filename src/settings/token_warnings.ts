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

/** Whether others may read the file at `path`, and it holds one of `tokens`. */
function isExposed(path: string, tokens: readonly string[]): boolean {
  try {
    if ((statSync(path).mode & 0o077) === 0) return false;
    const text = readTextFile(path);
    return tokens.some((token) => text.includes(token));
  } catch {
    // No such file: the tokens are in the environment.
    return false;
  }
}

/** One entry per weakness of the tokens in `settings`, which come at least partly from `configPath`. */
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
  const values = tokens.map(([, token]) => token);
  if (values.length === 0 || !isExposed(configPath, values)) return short;
  return [
    ...short,
    { about: `others can read ${configPath}, which holds a token`, fix: `chmod 600 ${configPath}` },
  ];
}
