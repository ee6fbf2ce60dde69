// Parses the bytes of a body as JSON: docs/reference.md "Bodies". The shape is checked elsewhere.
import { isUtf8 } from 'node:buffer';
import { fail } from '../../protocol/errors.ts';
import { HTTP } from '../../settings/limits.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether arrays and objects are nested deeper than `maxDepth`. Checked first, because parsing such text is
 * slow.
 */
function isDeeper(bytes: Uint8Array, maxDepth: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (quoted) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}

const invalidJson = (message: string) => fail('invalid_spec', message, { details: [{ path: '', message }] });

/** Throws invalid_spec for an empty body, invalid UTF-8, invalid JSON and excessive depth. */
export function parseBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw invalidJson('this request needs a body of JSON');
  if (!isUtf8(bytes)) throw invalidJson('the body is not UTF-8');
  if (isDeeper(bytes, HTTP.maxJsonDepth))
    throw invalidJson(`the body is nested deeper than ${HTTP.maxJsonDepth}`);
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());
  } catch (error) {
    throw invalidJson(
      `the body is not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}`,
    );
  }
}

/** `application/json`, with or without parameters. */
export const isJsonType = (contentType: string): boolean => /^application\/json\s*(?:;|$)/i.test(contentType);
