// Reading other tools' YAML leniently: what is there and of the kind that is looked for, and nothing else.
import type { YamlNode } from '../adapters/yaml.ts';

type OptionalNode = YamlNode | undefined;

/** The value under `key`, or under a path of keys. */
export function nodeAt(node: OptionalNode, ...keys: string[]): OptionalNode {
  return keys.reduce<OptionalNode>(
    (inner, key) => (inner?.kind === 'map' ? inner.rows.find((row) => row.key === key)?.value : undefined),
    node,
  );
}

/** A scalar as it is written; undefined for anything else, and for null. */
export const scalarText = (node: OptionalNode): string | undefined => {
  if (node?.kind !== 'scalar' || node.value === null) return undefined;
  return typeof node.value === 'string' ? node.value : node.source;
};

export const mapEntries = (node: OptionalNode): { key: string; value: YamlNode }[] =>
  node?.kind === 'map' ? node.rows : [];

export const listItems = (node: OptionalNode): YamlNode[] => (node?.kind === 'list' ? node.items : []);

/** Names from a list of them or from the keys of a map, as depends_on has it. */
export const listOrKeys = (node: OptionalNode): string[] =>
  node?.kind === 'list'
    ? node.items.flatMap((item) => scalarText(item) ?? [])
    : mapEntries(node).map(({ key }) => key);

/** Variables from a map or from a list of `KEY=value`. */
export function envEntries(node: OptionalNode): Map<string, string> | undefined {
  const entries =
    node?.kind === 'list'
      ? node.items.flatMap((item): [string, string][] => {
          const [, key, value] = /^([^=]+)=(.*)$/s.exec(scalarText(item) ?? '') ?? [];
          return key === undefined || value === undefined ? [] : [[key, value]];
        })
      : mapEntries(node).flatMap(({ key, value }): [string, string][] => {
          const text = scalarText(value);
          return text === undefined ? [] : [[key, text]];
        });
  return entries.length > 0 ? new Map(entries) : undefined;
}
