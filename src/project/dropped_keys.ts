// Keys that an importer does not carry over. They are reported, so that nothing is lost silently.
import type { YamlNode } from '../adapters/yaml.ts';
import { mapEntries } from './lenient_yaml.ts';

/** The keys that are carried over; the keys below one with a table are checked too. */
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

/** A note that names `dropped`; empty without keys. */
export const droppedNote = (of: string, dropped: readonly string[]): string[] =>
  dropped.length === 0
    ? []
    : [`${of}: ${dropped.join(', ')} ${dropped.length === 1 ? 'is' : 'are'} left out`];
