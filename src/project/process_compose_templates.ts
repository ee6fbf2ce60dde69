// The templates in a process-compose file, which process-compose fills in for each replica of a process.
import type { YamlNode } from '../adapters/yaml.ts';
import { mapEntries, nodeAt, scalarText } from './lenient_yaml.ts';
import { isYes } from './process_compose_keys.ts';

/** The variables of templates. */
export type TemplateVariables = ReadonlyMap<string, string>;

/** Those in `vars` of the file or process `node`. */
export const templateVariables = (node: YamlNode): TemplateVariables =>
  new Map(mapEntries(nodeAt(node, 'vars')).map(({ key, value }) => [key, scalarText(value) ?? '']));

/** Keys of a process with templates. */
const TEMPLATED: ReadonlySet<string> = new Set([
  'command',
  'working_dir',
  'environment',
  'readiness_probe',
  'liveness_probe',
]);

/** `{{.NAME}}` or `{{ "literal" }}`, or another template. */
const TEMPLATE = /\{\{\s*(?:\.(\w+)|"([^"\\]*)"|`([^`]*)`)\s*\}\}|\{\{.*?\}\}/gs;

/** The process `value` with its templates filled in, and those that only process-compose can fill in. */
export function withTemplates(
  value: YamlNode,
  variables: TemplateVariables,
): { value: YamlNode; left: string[] } {
  const left = new Set<string>();
  const all = new Map([...variables, ...templateVariables(value)]);
  const fill = (text: string): string =>
    text.replace(TEMPLATE, (whole: string, name?: string, quoted?: string, raw = quoted) => {
      const filled = name === undefined ? raw : all.get(name);
      if (filled === undefined) left.add(whole);
      return filled ?? whole;
    });
  const convert = (node: YamlNode): YamlNode => {
    if (node.kind === 'list') return { ...node, items: node.items.map(convert) };
    if (node.kind === 'map')
      return { ...node, rows: node.rows.map((row) => ({ ...row, value: convert(row.value) })) };
    return typeof node.value === 'string' ? { ...node, value: fill(node.value) } : node;
  };
  const isCommandPlain = isYes(nodeAt(value, 'is_template_disabled'));
  const isTemplated = (key: string): boolean => TEMPLATED.has(key) && !(key === 'command' && isCommandPlain);
  if (value.kind !== 'map') return { value, left: [] };
  const rows = value.rows.map((row) => (isTemplated(row.key) ? { ...row, value: convert(row.value) } : row));
  return { value: { ...value, rows }, left: [...left] };
}
