// What an importer does not carry over, found by what it does: nothing is lost in silence.
import type { YamlNode } from '../adapters/yaml.ts';
import { mapEntries } from './lenient_yaml.ts';

/** The keys that are carried over; a key with a table of its own is looked into. */
export interface KnownKeys {
  readonly [key: string]: true | KnownKeys;
}

/** The paths of the keys of `node` that are not in `known`, such as `shutdown.parent_only`. */
export function droppedKeys(node: YamlNode | undefined, known: KnownKeys): string[] {
  return mapEntries(node).flatMap(({ key, value }) => {
    if (key.startsWith('x-')) return [];
    const inner = Object.hasOwn(known, key) ? known[key] : undefined;
    if (inner === undefined) return [key];
    return inner === true ? [] : droppedKeys(value, inner).map((path) => `${key}.${path}`);
  });
}

/** A note that names `dropped`; none for no keys. */
export const droppedNote = (of: string, dropped: readonly string[]): string[] =>
  dropped.length === 0
    ? []
    : [`${of}: ${dropped.join(', ')} ${dropped.length === 1 ? 'is' : 'are'} left out`];
