/**
 * Returns `value`; throws when it is missing. Signals need it most: pid 0 in place of an unknown pid means
 * the tests' own process group, with the test run and its caller.
 */
export function must<Value>(value: Value | null | undefined): Value {
  if (value === null || value === undefined || value === 0)
    throw new Error(`expected a value, found ${value}`);
  return value;
}
