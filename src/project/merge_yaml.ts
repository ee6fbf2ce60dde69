// Merges the documents of a file and its override, as docker compose and process-compose do.
import type { YamlNode, YamlRow } from '../adapters/yaml.ts';
import { listOrKeys } from './lenient_yaml.ts';

/** A list that docker compose replaces: the command of a check. */
const REPLACED_LIST = 'test';

/** The rows of a map. A list, such as depends_on, may be overridden by a map of the same names. */
function rowsOf(node: YamlNode): YamlRow[] {
  if (node.kind === 'map') return node.rows;
  const { at } = node;
  return listOrKeys(node).map((key) => ({ key, keyAt: at, value: { kind: 'map', at, rows: [] } }));
}

function mergeRow(base: YamlRow | undefined, over: YamlRow): YamlRow {
  if (!base || (over.key === REPLACED_LIST && over.value.kind === 'list')) return over;
  return { ...over, value: mergeNodes(base.value, over.value) };
}

/** `over` merged into `base`: maps are merged by key, lists are appended, and values are replaced. */
export function mergeNodes(base: YamlNode, over: YamlNode): YamlNode {
  if (over.kind === 'scalar') return over.value === null ? base : over;
  if (base.kind === 'scalar') return over;
  if (base.kind === 'list' && over.kind === 'list') return { ...base, items: [...base.items, ...over.items] };
  const rows = new Map(rowsOf(base).map((row) => [row.key, row]));
  for (const row of rowsOf(over)) rows.set(row.key, mergeRow(rows.get(row.key), row));
  return { kind: 'map', at: over.at, rows: [...rows.values()] };
}
