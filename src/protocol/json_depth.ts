// The nesting depth of JSON from others.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether arrays and objects in the JSON text `bytes` are nested deeper than `maxDepth`. Check before
 * parsing: V8 serializes a parsed value by recursion, and throws at a few thousand levels.
 */
export function isJsonDeeper(bytes: Uint8Array, maxDepth: number): boolean {
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
