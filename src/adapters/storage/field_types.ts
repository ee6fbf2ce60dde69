// A check of rows written by another process: every field must have its type.

/** The type of each field of `T`, as `typeof` names it. */
export type FieldTypes<T> = { readonly [K in keyof T]: 'string' | 'number' | 'boolean' | 'object' };

/** Whether `value` has every field of `types` with its type; null counts as an object. */
export function hasFields<T>(value: unknown, types: FieldTypes<T>): value is T {
  if (typeof value !== 'object' || value === null) return false;
  const given: { [K in keyof T]?: unknown } = value;
  for (const key in types) if (typeof given[key] !== types[key]) return false;
  return true;
}
