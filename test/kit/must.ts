/**
 * `value`, which has to be there; throws where it is not. For what is sent a signal above all: number 0 in
 * place of a pid that is not known means everything in the tests' own process group, the test run and what
 * called it.
 */
export function must<Value>(value: Value | null | undefined): Value {
  if (value === null || value === undefined || value === 0)
    throw new Error(`expected a value, found ${value}`);
  return value;
}
