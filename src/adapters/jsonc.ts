// JSON with comments, of the user's own files (the package jsonc-parser): edits keep comments and layout.
import { applyEdits, type JSONPath, modify, type ParseError, parse } from 'jsonc-parser';

/** The value of `text`; undefined when it is no JSON, with comments and trailing commas or without. */
export function parseJsonc(text: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  return errors.length > 0 ? undefined : value;
}

/**
 * `text` with another value at `path`; undefined removes what is there. A last element of -1 appends to an
 * array. The layout of the rest stays.
 */
export function editJsonc(text: string, path: readonly (string | number)[], value: unknown): string {
  const formattingOptions = { insertSpaces: !/^\t/m.test(text), tabSize: indentOf(text), eol: eolOf(text) };
  const isArrayInsertion = path.at(-1) === -1;
  const edits = modify(text, path as JSONPath, value, { formattingOptions, isArrayInsertion });
  return applyEdits(text, edits);
}

const indentOf = (text: string): number => /^( +)\S/m.exec(text)?.[1]?.length ?? 2;
const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');
