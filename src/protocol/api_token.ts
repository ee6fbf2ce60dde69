// The text of an API token: docs/reference.md "API tokens".
import { type AccessKey, TOKEN_KEY_ID } from './access_key.ts';

/** Lets scanners of source code and logs recognise a token. */
const API_TOKEN_PREFIX = 'brt_';

const API_TOKEN = /^brt_([0-7][0-9A-HJKMNP-TV-Z]{25})_([A-Za-z0-9_-]{43})$/;
const KEY_ID = /^brt_([0-7][0-9A-HJKMNP-TV-Z]{25})$/;

/** `secret`: 32 random bytes in base64url. */
export const formatApiToken = (id: string, secret: string): string => `${API_TOKEN_PREFIX}${id}_${secret}`;

/** Whether `given` has the form of an API token, valid or not. */
export const isApiTokenForm = (given: string): boolean => given.startsWith(API_TOKEN_PREFIX);

/** The id in the text of a token; null if `given` is not one. */
export const apiTokenId = (given: string): string | null => API_TOKEN.exec(given)?.[1] ?? null;

/** The key made from an API token. The server finds it by the token's id. */
export function keyOfToken(token: string): AccessKey {
  const id = apiTokenId(token);
  return { id: id === null ? TOKEN_KEY_ID : `${API_TOKEN_PREFIX}${id}`, secret: token };
}

/** The id of the token whose key has this id; null if it is another kind of key. */
export const apiTokenOfKey = (keyId: string): string | null => KEY_ID.exec(keyId)?.[1] ?? null;
