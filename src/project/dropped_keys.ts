// Keys that an importer does not carry over. They are reported, so that nothing is lost silently.
import type { YamlNode } from '../adapters/yaml.ts';
import { mapEntries, scalarText } from './lenient_yaml.ts';

/**
 * The keys that are carried over: with any value, or with a text that the function accepts. The keys below
 * one with a table are checked too.
 */
export interface KnownKeys {
  readonly [key: string]: true | ((text: string) => boolean) | KnownKeys;
}

const isNull = (node: YamlNode): boolean => node.kind === 'scalar' && node.value === null;

/** Whether a value is one that `accepts` accepts; none at all is the default. */
function isAccepted(value: YamlNode, accepts: (text: string) => boolean): boolean {
  const text = scalarText(value);
  return isNull(value) || (text !== undefined && accepts(text));
}

/** The paths of the keys of `node` that `known` does not carry over, such as `shutdown.parent_only`. */
export function droppedKeys(node: YamlNode | undefined, known: KnownKeys): string[] {
  return mapEntries(node).flatMap(({ key, value }) => {
    if (key.startsWith('x-')) return [];
    const inner = Object.hasOwn(known, key) ? known[key] : undefined;
    if (inner === undefined) return [key];
    if (typeof inner === 'function') return isAccepted(value, inner) ? [] : [key];
    return inner === true ? [] : droppedKeys(value, inner).map((path) => `${key}.${path}`);
  });
}

/** A note that names `dropped`; empty without keys. */
export const droppedNote = (of: string, dropped: readonly string[]): string[] =>
  dropped.length === 0
    ? []
    : [`${of}: ${dropped.join(', ')} ${dropped.length === 1 ? 'is' : 'are'} left out`];
