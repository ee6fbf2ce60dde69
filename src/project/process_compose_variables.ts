// The variables in a process-compose file, which process-compose fills in before it reads the file.
import type { YamlNode } from '../adapters/yaml.ts';
import { escapeInterpolation, withBraces } from './imported_project.ts';
import { InterpolationError, interpolate, type VariableLookup } from './interpolate.ts';
import { nodeAt } from './lenient_yaml.ts';
import { isYes } from './process_compose_keys.ts';

/**
 * Who fills in the variables of a text: `up`, from the shell that runs it, in a command or in another text;
 * or the import, as a project file has none in a number, a flag or a name.
 */
type Filler = 'command' | 'up' | 'import';

/** Keys of a text that `up` fills in. */
const TEXTS: ReadonlySet<string> = new Set(['working_dir', 'host', 'path', 'port']);
/** Keys of a list or map of such texts. */
const TEXT_LISTS: ReadonlySet<string> = new Set(['environment', 'entrypoint', 'vars']);

/** The start of a `${...}`, and of one of a form that a project file has. */
const EXPRESSION = /\$\$|\$\{(?:([A-Za-z_]\w*)(?=\}|:?[-+?])(\}?))?/g;

/** Who fills in the text, or the texts, of the key `key` in one of those that `outer` fills in. */
function fillerOf(key: string, value: YamlNode, outer: Filler): Filler {
  if (outer !== 'import') return outer;
  if (value.kind !== 'scalar') return TEXT_LISTS.has(key) ? 'up' : 'import';
  if (key === 'command') return 'command';
  return TEXTS.has(key) ? 'up' : 'import';
}

/** What each filler makes of a text, and the names that it finds not to be set. */
function textForms(variable: VariableLookup) {
  const unset = new Set<string>();
  const isSet = (name: string): boolean => variable(name) !== undefined;
  // The shell may know others: the process's own.
  const command = (text: string): string =>
    text.replace(EXPRESSION, (whole, name?: string) =>
      whole === '$$' || (name !== undefined && isSet(name)) ? whole : `$${whole}`,
    );
  const up = (text: string): string =>
    withBraces(text, isSet).replace(EXPRESSION, (whole, name?: string, end?: string) => {
      if (whole === '$$' || (name !== undefined && (isSet(name) || end === ''))) return whole;
      if (name === undefined) return `$${whole}`;
      unset.add(name);
      return `\${${name}:-}`;
    });
  const atImport = (text: string): string => {
    try {
      return interpolate(up(text), variable);
    } catch (error) {
      if (error instanceof InterpolationError) return text;
      throw error;
    }
  };
  return { unset, forms: { command, up, import: atImport } };
}

const UNCHANGED = { command: escapeInterpolation, up: escapeInterpolation, import: (text: string) => text };

/**
 * `tree` with texts for a project file. A `$NAME` without braces is the shell's in a command; elsewhere it is
 * a variable only if it is set, and otherwise part of a value, such as a password. A variable that is not
 * set is empty, as in process-compose, and a note names it.
 */
export function withVariables(tree: YamlNode, variable: VariableLookup): { tree: YamlNode; notes: string[] } {
  const { unset, forms } = textForms(variable);
  const texts = isYes(nodeAt(tree, 'disable_env_expansion')) ? UNCHANGED : forms;
  const convert = (node: YamlNode, filler: Filler, parent = ''): YamlNode => {
    if (node.kind === 'list') return { ...node, items: node.items.map((item) => convert(item, filler)) };
    if (node.kind === 'scalar')
      return typeof node.value === 'string' ? { ...node, value: texts[filler](node.value) } : node;
    const rows = node.rows.map((row) => {
      // The keys there are names of processes.
      const own = parent === 'processes' ? filler : fillerOf(row.key, row.value, filler);
      return { ...row, value: convert(row.value, own, row.key) };
    });
    return { ...node, rows };
  };
  const converted = convert(tree, 'import');
  const names = [...unset].map((name) => `\${${name}}`).join(', ');
  return { tree: converted, notes: names === '' ? [] : [`not set, and therefore empty: ${names}`] };
}
