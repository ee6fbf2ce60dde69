// Reads the body of a request, and parses it as JSON: docs/reference.md "Bodies". The shape is checked
// elsewhere.
import { isUtf8 } from 'node:buffer';
import { fail } from '../../protocol/errors.ts';
import { isJsonDeeper } from '../../protocol/json_depth.ts';
import { HTTP } from '../../settings/limits.ts';
import type { HttpExchange } from '../server/http_server.ts';

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

const wrongType = () => fail('unsupported_media_type', 'the body is not application/json');

/** `application/json`, with or without parameters. */
export const isJsonType = (contentType: string): boolean => /^application\/json\s*(?:;|$)/i.test(contentType);

/**
 * Resolves with the bytes of a body that must be JSON by its type. Throws unsupported_media_type, or rejects
 * with it: clients may send no body as an empty chunked one without a type, so only a byte shows that a
 * chunked body has the wrong type. Rejects as `readBody` does. Must be called before anything is awaited.
 */
export function readJsonBody(exchange: HttpExchange): Promise<Uint8Array> {
  const { hasBody, isChunked } = exchange.head;
  const isOtherType = hasBody && !isJsonType(exchange.header('content-type'));
  if (isOtherType && !isChunked) throw wrongType();
  return exchange.readBody({ bytes: HTTP.maxBodyBytes, ms: HTTP.bodyTimeoutMs }).then((bytes) => {
    if (isOtherType && bytes.length > 0) throw wrongType();
    return bytes;
  });
}
