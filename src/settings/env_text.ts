// The text of an env file, read as docker compose reads it: docs/reference.md "Env files". `util.parseEnv`
// and the package dotenv end a value without quotes at any `#`, and have no variables.
import { TEXT_FILE } from './limits.ts';

/** The value of `$NAME`, which an earlier line of the file may have set to `own`; undefined for none. */
export type EnvLookup = (name: string, own: string | undefined) => string | undefined;

/** Written by some editors at the start of a file; it is no part of the first name. */
const BYTE_ORDER_MARK = '\uFEFF';

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' };

const NAME = '[A-Za-z_][A-Za-z0-9_]*';
/** A default, which may contain a `${...}`. Written so that it is matched in linear time. */
const WORD = '[^{}$]*(?:\\$(?:\\{[^{}]*\\})?[^{}$]*)*';
/** What a backslash or a dollar sign begins. `$$` may escape a placeholder of the daemon. */
const EXPRESSION = new RegExp(`\\\\(.)|\\$\\$|\\$(?:(${NAME})|\\{(${NAME})(?:(:?)-(${WORD}))?\\})`, 'gs');

/** What a backslash escapes within each kind of quotes. */
const ESCAPED_IN: ReadonlyMap<string | undefined, RegExp> = new Map([
  ['"', /./s],
  ["'", /'/],
  ['`', /(?!)/],
]);

/** The position of the quote that closes the one at `from`; -1 without one. */
function closingQuote(text: string, from: number, escaped: RegExp): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === text[from]) return at;
    if (text[at] === '\\' && escaped.test(text[at + 1] ?? '')) at += 1;
  }
  return -1;
}

/**
 * Fills in the escapes and variables of values; variables that are not known stay. Throws if the variables
 * are too large together, as a few lines could double a value again and again.
 */
function expander(lookup: (name: string) => string | undefined) {
  let size = 0;
  const expand = (text: string, isQuoted: boolean): string =>
    text.replace(EXPRESSION, (whole: string, ...groups: (string | undefined)[]) => {
      const [escaped, bare, name = bare, colon, word] = groups;
      if (escaped !== undefined) return (escaped === '$' ? '$' : isQuoted && ESCAPES[escaped]) || whole;
      const value = name === undefined ? undefined : lookup(name);
      if (word !== undefined && (value === undefined || (value === '' && colon)))
        return expand(word, isQuoted);
      size += value?.length ?? 0;
      if (size > TEXT_FILE.maxBytes)
        throw new Error(`its variables expand to more than ${TEXT_FILE.maxBytes} characters`);
      return value ?? whole;
    });
  return expand;
}

/**
 * The variables in the text of an env file. `lookup` supplies those that its values refer to. Throws for a
 * quote that is not closed; the message has the line and nothing of its text.
 */
export function parseEnvText(text: string, lookup: EnvLookup = (_, own) => own): [string, string][] {
  const all = (text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text).replace(/\r\n?/g, '\n');
  const variables = new Map<string, string>();
  const expand = expander((name) => lookup(name, variables.get(name)));
  const endOfLine = (from: number): number => {
    const end = all.indexOf('\n', from);
    return end < 0 ? all.length : end;
  };
  let next = 0;
  for (let at = 0; at < all.length; at = next) {
    const end = endOfLine(at);
    next = end + 1;
    const [, key, value] = /^([^=]+)=(.*)$/s.exec(all.slice(at, end)) ?? [];
    const name = key?.trim().replace(/^export\s+/, '');
    if (!name || value === undefined || name.startsWith('#')) continue;
    const start = end - value.trimStart().length;
    const escaped = ESCAPED_IN.get(all[start]);
    if (!escaped) {
      variables.set(name, expand(value.replace(/\s#.*/s, '').trim(), false));
      continue;
    }
    const close = closingQuote(all, start, escaped);
    const after = all.slice(close + 1, endOfLine(close)).trim();
    if (close < 0 || (after !== '' && !after.startsWith('#'))) {
      const line = all.slice(0, at).split('\n').length;
      const fault = close < 0 ? 'has no closing quote' : 'has text after its closing quote';
      throw new Error(`line ${line}: the value ${fault}`);
    }
    const quoted = all.slice(start + 1, close);
    const unescaped = all[start] === "'" ? quoted.replaceAll("\\'", "'") : quoted;
    variables.set(name, all[start] === '"' ? expand(quoted, true) : unescaped);
    next = endOfLine(close) + 1;
  }
  return [...variables];
}
