// JSON patches as the API server applies them (RFC 6902, the operations that Berth uses): all steps, or none.
import type { Json } from './kube_double.ts';

/** A step does not apply: the API server answers 422. */
export class PatchFailed extends Error {}

const isSame = (one: Json, other: Json): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The object that holds the last word of `path`, and that word. */
function placeOf(root: Json, path: string): [holder: Json, key: string] {
  const words = path
    .split('/')
    .slice(1)
    .map((word) => word.replaceAll('~1', '/').replaceAll('~0', '~'));
  const key = words.pop() ?? '';
  const holder = words.reduce((value, word) => value?.[word], root);
  if (typeof holder !== 'object' || holder === null) throw new PatchFailed(`${path}: missing container`);
  return [holder, key];
}

/** As Go writes a string in JSON, in which the API server compares. */
const goText = (value: string): string =>
  JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** `object` with the steps applied that `text`, the body of the request, has. */
export function applyJsonPatch(object: Json, text: string): Json {
  const steps: readonly Json[] = JSON.parse(text);
  const result = structuredClone(object);
  for (const { op, path, value } of steps) {
    const [holder, key] = placeOf(result, path);
    const isThere = holder[key] !== undefined;
    if (op === 'test') {
      // Its package takes null for a path that is missing.
      const isText = typeof value !== 'string' || text.includes(goText(value));
      if (!isText || !isSame(holder[key] ?? null, value))
        throw new PatchFailed(`testing value ${path} failed`);
    } else if (op === 'remove') {
      if (!isThere) throw new PatchFailed(`${path}: unable to remove nonexistent key`);
      delete holder[key];
    } else if (op === 'add' || (op === 'replace' && isThere)) holder[key] = value;
    else throw new PatchFailed(`${path}: ${op} does not apply`);
  }
  return result;
}
