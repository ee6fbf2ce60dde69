// Decides which lines a query matches. A search reads far more bytes than matching lines, so each filter also
// has a `hint`: an expression over the bytes of a block that matches somewhere in every matching line, in
// time linear in the block.
import { type LinearRegex, linearRegex, RegexError } from '../adapters/linear_regex.ts';
import { fail } from '../protocol/errors.ts';
import type { LogFilterSpec, LogLevel } from '../protocol/logs.ts';
import { fieldsOf, isAtLeast, levelOf, levelPattern } from './log_level.ts';
import { requiredLiterals } from './required_literals.ts';

/** The readable text of a line, and what was read from it. */
export interface ReadLine {
  text: string;
  level: LogLevel | null;
  fields: Record<string, unknown> | null;
}

const SPECIAL = /[.*+?^${}()|[\]\\/]/g;
const escapeText = (text: string): string => text.replace(SPECIAL, '\\$&');
/** Colour sequences, which may occur between any two characters of a line. */
const COLOURS = '(?:\\x1b\\[[0-9;:]*m)*';
/** Cursor movements within a line, because of which its text differs from its bytes. */
const MOVES = '\\x08|\\r(?=[^\\r\\n])|(?:\\x1b\\[|\\x9b)[\\d;]*[CDGK]';
const ESCAPE = 0x1b;
const BACKSPACE = 0x08;
const CARRIAGE_RETURN = 0x0d;

/** The longest ASCII part of `text`, whose bytes are its characters. */
const longestAscii = (text: string): string =>
  text.split(/[^\x20-\x7e]+/).reduce((longest, part) => (part.length > longest.length ? part : longest), '');

/** An expression over bytes, taken as Latin-1 characters. */
class ByteHint {
  private readonly plain: RegExp;
  private readonly coloured: RegExp;

  constructor(plain: string, coloured: string) {
    this.plain = new RegExp(plain, 'gi');
    this.coloured = new RegExp(`${coloured}|${MOVES}`, 'gi');
  }

  /** A hint that one of `texts`, which must be ASCII, occurs in any case. */
  static ofTexts(texts: readonly string[]): ByteHint {
    const coloured = texts.map((text) => [...text].map(escapeText).join(COLOURS));
    return new ByteHint(texts.map(escapeText).join('|'), coloured.join('|'));
  }

  /** The positions in `bytes` that may lie in a wanted line, ascending. */
  positions(bytes: Buffer): number[] {
    const isPlain = !bytes.includes(ESCAPE) && !bytes.includes(BACKSPACE) && !bytes.includes(CARRIAGE_RETURN);
    const expression = isPlain ? this.plain : this.coloured;
    const text = bytes.toString('latin1');
    const found: number[] = [];
    expression.lastIndex = 0;
    for (let match = expression.exec(text); match; match = expression.exec(text)) {
      found.push(match.index);
      // One match per line is enough.
      const newline = bytes.indexOf(0x0a, match.index);
      if (newline < 0) break;
      expression.lastIndex = newline + 1;
    }
    return found;
  }
}

/** A query, compiled. */
export interface LogFilter {
  /** Epoch milliseconds; both are inclusive. */
  since: number;
  until: number;
  /** 1 or 2; null: both. */
  stream: 1 | 2 | null;
  /** null: the filter has nothing to search bytes for. */
  hint: ByteHint | null;
  /** Whether lines are selected by their text. In that case, run marks are left out. */
  hasText: boolean;
  /** The number of lines to show around each match. */
  context: number;
  /** Whether a line is wanted. */
  accepts(line: ReadLine): boolean;
}

async function compileRegex(pattern: string | null): Promise<LinearRegex | null> {
  if (pattern === null) return null;
  try {
    return await linearRegex(pattern);
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    const message = `regex must be a regular expression in the syntax of RE2: ${error.message}`;
    throw fail('invalid_spec', message, { details: [{ path: 'regex', message }] });
  }
}

/** The rarest hint that a query allows: text written by a person is rarer than a level. */
function hintOf({ q, regex, level }: LogFilterSpec): ByteHint | null {
  const ascii = q === null ? '' : longestAscii(q);
  if (ascii !== '') return ByteHint.ofTexts([ascii]);
  const literals = regex === null ? null : requiredLiterals(regex);
  if (literals) return ByteHint.ofTexts(literals);
  if (level === null) return null;
  const pattern = levelPattern(level);
  // Nobody prints a level word with colours inside it.
  return new ByteHint(pattern, pattern);
}

/** Compiles a query. Rejects with invalid_spec when its regex is not valid. */
export async function compileFilter(spec: LogFilterSpec): Promise<LogFilter> {
  const { q, level, since, until, stream } = spec;
  const regex = await compileRegex(spec.regex);
  const hasText = q !== null || regex !== null || level !== null;
  const contains = q === null ? null : new RegExp(escapeText(q), 'iu');
  return {
    since: since ?? Number.NEGATIVE_INFINITY,
    until: until ?? Number.POSITIVE_INFINITY,
    stream: stream && (stream === 'stdout' ? 1 : 2),
    hint: hintOf(spec),
    hasText,
    context: hasText ? spec.context : 0,
    accepts: ({ text, level: of }) =>
      (contains === null || contains.test(text)) &&
      (level === null || isAtLeast(of, level)) &&
      (regex === null || regex.test(text)),
  };
}

/** Reads level and fields of the readable text of a line. */
export function readLine(text: string): ReadLine {
  const fields = fieldsOf(text);
  return { text, fields, level: levelOf(text, fields) };
}
