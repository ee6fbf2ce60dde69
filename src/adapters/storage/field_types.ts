// What another process has written is taken for what it should be only when every field has its type.

/** The type of each field of `T`, as `typeof` says it. */
export type FieldTypes<T> = { readonly [K in keyof T]: 'string' | 'number' | 'boolean' | 'object' };

/** Whether every field of `types` is in `value` with its type; null is an object. */
export function hasFields<T>(value: unknown, types: FieldTypes<T>): value is T {
  if (typeof value !== 'object' || value === null) return false;
  const given: { [K in keyof T]?: unknown } = value;
  for (const key in types) if (typeof given[key] !== types[key]) return false;
  return true;
}
