// Reads other tools' YAML leniently: a missing value or one of another kind counts as absent.
import type { YamlNode } from '../adapters/yaml.ts';

type OptionalNode = YamlNode | undefined;

/** The value at a path of keys. */
export function nodeAt(node: OptionalNode, ...keys: string[]): OptionalNode {
  return keys.reduce<OptionalNode>(
    (inner, key) => (inner?.kind === 'map' ? inner.rows.find((row) => row.key === key)?.value : undefined),
    node,
  );
}

/** The text of a scalar; undefined for null and for other kinds. */
export const scalarText = (node: OptionalNode): string | undefined => {
  if (node?.kind !== 'scalar' || node.value === null) return undefined;
  return typeof node.value === 'string' ? node.value : node.source;
};

/** The rows of a map; empty for other kinds. */
export const mapEntries = (node: OptionalNode): { key: string; value: YamlNode }[] =>
  node?.kind === 'map' ? node.rows : [];

/** The items of a list; empty for other kinds. */
export const listItems = (node: OptionalNode): YamlNode[] => (node?.kind === 'list' ? node.items : []);

/** The items of a list or the keys of a map, as in depends_on, each once. */
export const listOrKeys = (node: OptionalNode): string[] => [
  ...new Set(
    node?.kind === 'list'
      ? node.items.flatMap((item) => scalarText(item) ?? [])
      : mapEntries(node).map(({ key }) => key),
  ),
];

/** Variables from a map or from a list of `KEY=value`; undefined without any. */
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
