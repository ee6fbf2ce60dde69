// Kinds of fields, and a check that names every wrong one (contract section 2). Loaded with
// the first request that has a body, because zod costs a cold start more than all the rest of the front.
import { z } from '../adapters/zod.ts';
import { type FailureDetail, fail } from '../protocol/errors.ts';

export { z };

type Detail = NonNullable<FailureDetail['details']>[number];

/** Text that can be written to a file, an environment and a header of ours: no NUL, no half surrogate pairs. */
export const isText = (text: string): boolean => !/[\0\p{Surrogate}]/u.test(text);

/** A string for which `fits` holds; `must` says what it must be, after the word "must". */
export const text = (must: string, fits: (value: string) => boolean = () => true) =>
  z
    .string(must)
    .refine((value) => isText(value) && fits(value), must)
    .describe(must);

export const pattern = (must: string, regex: RegExp) => z.string(must).regex(regex, must).describe(must);

export const integer = (from: number, to: number, must = `must be an integer from ${from} to ${to}`) =>
  z.int(must).min(from, must).max(to, must).describe(must);

export const flag = () => z.boolean('must be true or false');

/** An object without other fields; `readOnly` are those a GET returns: they may be sent back and are ignored. */
export function record<S extends z.core.$ZodLooseShape>(fields: S, readOnly: readonly string[] = []) {
  const ignored = readOnly.map((name) => [name, z.unknown().meta({ readOnly: true }).optional()]);
  const shape: S = { ...Object.fromEntries(ignored), ...fields };
  return z.strictObject(shape, 'must be a JSON object');
}

const of = (path: readonly PropertyKey[]): string => path.map(String).join('.');

function detailsOf(issues: readonly z.core.$ZodIssue[]): Detail[] {
  const details = new Map<string, string>();
  for (const issue of issues) {
    const unknown = issue.code === 'unrecognized_keys' ? issue.keys : null;
    for (const key of unknown ?? []) details.set(of([...issue.path, key]), 'is not a field of this request');
    const path = of(issue.path);
    if (!unknown && !details.has(path)) details.set(path, issue.message);
  }
  return [...details].map(([path, message]) => ({ path, message: `${path || 'the body'} ${message}` }));
}

/** A wrong body: one message for people, one detail per field for programs. */
export const wrong = (details: Detail[], hint?: string) =>
  fail('invalid_spec', details.map(({ message }) => message).join('; '), {
    details,
    ...(hint ? { hint } : {}),
  });

/** The value as `shape` has it. Throws invalid_spec naming every wrong field; `more` are faults that zod cannot see. */
export function check<S extends z.ZodType>(
  shape: S,
  value: unknown,
  more: Detail[] = [],
  hint?: string,
): z.infer<S> {
  const result = shape.safeParse(value);
  if (result.success && more.length === 0) return result.data;
  const found = result.success ? [] : detailsOf(result.error.issues);
  throw wrong([...found, ...more], hint);
}
