// Fills in ${NAME} in a project file, as compose does. A bare $NAME is left to the shell that runs the
// command.
import { PLACEHOLDER } from '../protocol/stacks.ts';

/** A `${...}` that cannot be filled in; the message says how to correct it. */
export class InterpolationError extends Error {
  override readonly name = 'InterpolationError';
}

/** The most expressions that may be nested in one another. */
const MAX_DEPTH = 32;

export type VariableLookup = (name: string) => string | undefined;

/** By the operator between name and word. After a colon, an empty value counts as unset. */
const OPERATORS: Record<string, (value: string | undefined, word: () => string, name: string) => string> = {
  '-': (value, word) => value ?? word(),
  '+': (value, word) => (value === undefined ? '' : word()),
  '?': (value, word, name) => {
    if (value !== undefined) return value;
    throw new InterpolationError(`\${${name}}: ${word() || 'is not set'}`);
  },
};

/**
 * The end of the expression that begins at `from` (just after `${`), with nested ones skipped; -1 without an
 * end.
 */
function closingBrace(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '$' && text[at + 1] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}

function expandExpression(expression: string, lookup: VariableLookup, depth: number): string {
  const [, name, colon, operator, word = ''] =
    /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?)([-+?])(.*))?$/s.exec(expression) ?? [];
  if (name === undefined) {
    const forms = `\${NAME}, \${NAME:-default} or \${NAME:?message}`;
    throw new InterpolationError(`\${${expression}} is none of ${forms}; write $\${ for a literal \${`);
  }
  const value = lookup(name);
  const apply = operator === undefined ? undefined : OPERATORS[operator];
  if (apply) {
    const expanded = (): string => interpolate(word, lookup, depth + 1);
    return apply(colon && value === '' ? undefined : value, expanded, name);
  }
  if (value !== undefined) return value;
  throw new InterpolationError(
    `\${${name}} is not set: set it, write \${${name}:-default}, or $${name} to leave it to the shell`,
  );
}

/**
 * A placeholder of the daemon at this position, or an escaped one, which the daemon reads too; null without
 * one.
 */
function placeholderAt(text: string, at: number): string | null {
  const pattern = new RegExp(PLACEHOLDER.source, 'y');
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

/**
 * Fills in every `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${NAME:+word}` of `text`; `$$` is a
 * dollar sign. What the daemon fills in, such as `${port.web}`, stays. Throws an InterpolationError for a
 * name that is not set and has no default. `depth` is that of the expression that contains `text`.
 */
export function interpolate(text: string, lookup: VariableLookup, depth = 0): string {
  if (depth > MAX_DEPTH) throw new InterpolationError(`more than ${MAX_DEPTH} \${...} are nested`);
  let out = '';
  let at = 0;
  for (;;) {
    const dollar = text.indexOf('$', at);
    if (dollar < 0) return out + text.slice(at);
    out += text.slice(at, dollar);
    const next = text[dollar + 1];
    const placeholder = placeholderAt(text, dollar);
    if (placeholder !== null) {
      out += placeholder;
      at = dollar + placeholder.length;
    } else if (next === '$') {
      out += '$';
      at = dollar + 2;
    } else if (next === '{') {
      const end = closingBrace(text, dollar + 2);
      if (end < 0) throw new InterpolationError(`\${ without its }; write $\${ for a literal \${`);
      out += expandExpression(text.slice(dollar + 2, end), lookup, depth);
      at = end + 1;
    } else {
      out += '$';
      at = dollar + 1;
    }
  }
}
