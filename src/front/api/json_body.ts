// Parses the bytes of a body as JSON: docs/reference.md "Bodies". The shape is checked elsewhere.
import { isUtf8 } from 'node:buffer';
import { fail } from '../../protocol/errors.ts';
import { isJsonDeeper } from '../../protocol/json_depth.ts';
import { HTTP } from '../../settings/limits.ts';

const invalidJson = (message: string) => fail('invalid_spec', message, { details: [{ path: '', message }] });

/** Throws invalid_spec for an empty body, invalid UTF-8, invalid JSON and excessive depth. */
export function parseBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw invalidJson('this request needs a body of JSON');
  if (!isUtf8(bytes)) throw invalidJson('the body is not UTF-8');
  if (isJsonDeeper(bytes, HTTP.maxJsonDepth))
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
