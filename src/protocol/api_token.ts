// The text of an API token: docs/reference.md "API tokens".
import { type AccessKey, TOKEN_KEY_ID } from './access_key.ts';

/** By it, scanners of source and logs recognise one. */
const API_TOKEN_PREFIX = 'brt_';

const API_TOKEN = /^brt_([0-7][0-9A-HJKMNP-TV-Z]{25})_([A-Za-z0-9_-]{43})$/;
const KEY_ID = /^brt_([0-7][0-9A-HJKMNP-TV-Z]{25})$/;

/** `secret`: 32 random bytes in base64url. */
export const formatApiToken = (id: string, secret: string): string => `${API_TOKEN_PREFIX}${id}_${secret}`;

/** Whether `given` claims to be an API token. */
export const isApiTokenForm = (given: string): boolean => given.startsWith(API_TOKEN_PREFIX);

/** The id in the text of a token; null: it is none. */
export const apiTokenId = (given: string): string | null => API_TOKEN.exec(given)?.[1] ?? null;

/** The key of a token of the cloud part: by its id the server finds it. */
export function keyOfToken(token: string): AccessKey {
  const id = apiTokenId(token);
  return { id: id === null ? TOKEN_KEY_ID : `${API_TOKEN_PREFIX}${id}`, secret: token };
}

/** The token whose key has this id; null: it is the id of another key. */
export const apiTokenOfKey = (keyId: string): string | null => KEY_ID.exec(keyId)?.[1] ?? null;
