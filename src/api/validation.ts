// Shapes of fields, and a validation that names every wrong field: docs/reference.md "Errors".
import { z } from '../adapters/zod.ts';
import { type FailureDetail, fail } from '../protocol/errors.ts';
import { textFault } from '../protocol/text_fault.ts';
import { HTTP } from '../settings/limits.ts';

export { z };

export type InvalidField = NonNullable<FailureDetail['details']>[number];

const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

/** Whether `text` has at most `maxLength` characters and no control characters. */
export const isPlainText = (text: string, maxLength: number): boolean =>
  text.length <= maxLength && !CONTROLS.test(text);

/** A string for which `fits` returns true; `must` states the rule, and begins with the word "must". */
export const stringField = (must: string, fits: (value: string) => boolean = () => true) =>
  z
    .string(must)
    .refine((value) => textFault(value) === null && fits(value), {
      // `must` says what a string of this field may not contain, but not that it is half a character.
      error: ({ input }) => (typeof input === 'string' && !input.includes('\0') && textFault(input)) || must,
    })
    .describe(must);

export const patternField = (must: string, regex: RegExp) => z.string(must).regex(regex, must).describe(must);

export const integerField = (from: number, to: number, must = `must be an integer from ${from} to ${to}`) =>
  z.int(must).min(from, must).max(to, must).describe(must);

export const flagField = () => z.boolean('must be true or false');

/** The body of a request: `I` is what a client sends, `B` is the validated body with all defaults. */
export class RequestBody<I = unknown, B = unknown> {
  /** For the API's document. */
  readonly shape: z.ZodType<unknown, I>;
  /** Throws invalid_spec with every wrong field; `extraFaults` are those of `findFaults`. */
  readonly parse: (value: unknown, extraFaults?: readonly InvalidField[]) => B;
  /** Finds the faults whose check must load a package first. */
  readonly findFaults: (value: unknown) => Promise<readonly InvalidField[]>;

  constructor(
    shape: z.ZodType<unknown, I>,
    parse: (value: unknown, extraFaults?: readonly InvalidField[]) => B,
    findFaults: (value: unknown) => Promise<readonly InvalidField[]> = async () => [],
  ) {
    this.shape = shape;
    this.parse = parse;
    this.findFaults = findFaults;
  }
}

/**
 * An object with only these fields. `readOnly` names fields of a GET answer: a client may send them back, and
 * they are ignored.
 */
export function objectShape<S extends z.core.$ZodLooseShape>(fields: S, readOnly: readonly string[] = []) {
  const ignored = readOnly.map((name) => [name, z.unknown().meta({ readOnly: true }).optional()]);
  const shape: S = { ...Object.fromEntries(ignored), ...fields };
  return z.strictObject(shape, 'must be a JSON object');
}

const fieldPath = (path: readonly PropertyKey[]): string => path.map(String).join('.');

const isOtherType = ([first]: readonly z.core.$ZodIssue[]): boolean =>
  (first?.code === 'invalid_type' || first?.code === 'invalid_value') && first.path.length === 0;

/** For a field that takes several forms, the faults of the closest form, which has the fewest. */
function faultsOf(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const branches = issue.errors.filter((branch) => branch.length > 0 && !isOtherType(branch));
  const meant = branches.toSorted((a, b) => a.length - b.length)[0];
  if (!meant || branches.filter(({ length }) => length === meant.length).length > 1) return [issue];
  return meant.flatMap((fault) => faultsOf({ ...fault, path: [...issue.path, ...fault.path] }));
}

/** The details up to the limit, and the number of faults beyond it. */
function detailsOf(issues: readonly z.core.$ZodIssue[]): { details: InvalidField[]; left: number } {
  const details = new Map<string, string>();
  let left = 0;
  const add = (path: string, message: string): void => {
    if (details.size < HTTP.maxErrorDetails) details.set(path, message);
    else left += 1;
  };
  for (const issue of issues.flatMap(faultsOf)) {
    const unknown = issue.code === 'unrecognized_keys' ? issue.keys : null;
    for (const key of unknown ?? []) add(fieldPath([...issue.path, key]), 'is not a field of this request');
    const path = fieldPath(issue.path);
    if (!unknown && !details.has(path)) add(path, issue.message);
  }
  const listed = [...details].map(([path, message]) => ({
    path,
    message: `${path || 'the body'} ${message}`,
  }));
  return { details: listed, left };
}

/**
 * The failure for a wrong body: one message for people, one detail per field for programs; `left` is the
 * number of omitted faults.
 */
function invalidBody(details: InvalidField[], hint?: string, left = 0) {
  const messages = details.map(({ message }) => message);
  if (left > 0) messages.push(`and ${left} more`);
  return fail('invalid_spec', messages.join('; '), { details, ...(hint ? { hint } : {}) });
}

/**
 * The value parsed by `shape`. Throws invalid_spec, which names every wrong field; `extraFaults` are the
 * faults that zod cannot find.
 */
export function validate<S extends z.ZodType>(
  shape: S,
  value: unknown,
  extraFaults: InvalidField[] = [],
  hint?: string,
): z.infer<S> {
  const result = shape.safeParse(value);
  if (result.success && extraFaults.length === 0) return result.data;
  const { details, left } = result.success ? { details: [], left: 0 } : detailsOf(result.error.issues);
  // An extra fault says more about its field.
  const others = details.filter(({ path }) => !extraFaults.some((extra) => extra.path === path));
  throw invalidBody([...others, ...extraFaults], hint, left);
}
