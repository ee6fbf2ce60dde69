// Reading other tools' YAML leniently: what is there and of the kind that is looked for, and nothing else.
import type { YamlNode } from '../adapters/yaml.ts';

type MaybeNode = YamlNode | undefined;

/** The value under `key`, or under a path of keys. */
export function at(node: MaybeNode, ...keys: string[]): MaybeNode {
  return keys.reduce<MaybeNode>(
    (inner, key) => (inner?.kind === 'map' ? inner.rows.find((row) => row.key === key)?.value : undefined),
    node,
  );
}

/** A scalar as it is written; undefined for anything else, and for null. */
export const textOf = (node: MaybeNode): string | undefined => {
  if (node?.kind !== 'scalar' || node.value === null) return undefined;
  return typeof node.value === 'string' ? node.value : node.source;
};

export const rowsOf = (node: MaybeNode): { key: string; value: YamlNode }[] =>
  node?.kind === 'map' ? node.rows : [];

export const itemsOf = (node: MaybeNode): YamlNode[] => (node?.kind === 'list' ? node.items : []);

/** Names from a list of them or from the keys of a map, as depends_on has it. */
export const namesOf = (node: MaybeNode): string[] =>
  node?.kind === 'list'
    ? node.items.flatMap((item) => textOf(item) ?? [])
    : rowsOf(node).map(({ key }) => key);

/** Variables from a map or from a list of `KEY=value`. */
export function envOf(node: MaybeNode): Map<string, string> | undefined {
  const entries =
    node?.kind === 'list'
      ? node.items.flatMap((item): [string, string][] => {
          const [, key, value] = /^([^=]+)=(.*)$/s.exec(textOf(item) ?? '') ?? [];
          return key === undefined || value === undefined ? [] : [[key, value]];
        })
      : rowsOf(node).flatMap(({ key, value }): [string, string][] => {
          const text = textOf(value);
          return text === undefined ? [] : [[key, text]];
        });
  return entries.length > 0 ? new Map(entries) : undefined;
}
