// JSON with comments, for the user's own files (the package jsonc-parser). Edits keep comments and layout.
import { applyEdits, type JSONPath, modify, type ParseError, parse } from 'jsonc-parser';

/** Parses JSON with optional comments and trailing commas; undefined if it is invalid or nested too deep. */
export function parseJsonc(text: string): unknown {
  const errors: ParseError[] = [];
  try {
    const value: unknown = parse(text, errors, { allowTrailingComma: true });
    return errors.length > 0 ? undefined : value;
  } catch (error) {
    // The parser calls itself for each level.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * `text` with another value at `path`; undefined removes the value. A last element of -1 appends to an array.
 * The rest keeps its layout.
 */
export function editJsonc(text: string, path: readonly (string | number)[], value: unknown): string {
  const formattingOptions = { insertSpaces: !/^\t/m.test(text), tabSize: indentOf(text), eol: eolOf(text) };
  const isArrayInsertion = path.at(-1) === -1;
  const edits = modify(text, path as JSONPath, value, { formattingOptions, isArrayInsertion });
  return applyEdits(text, edits);
}

const indentOf = (text: string): number => /^( +)\S/m.exec(text)?.[1]?.length ?? 2;
const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');
