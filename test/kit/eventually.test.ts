import { expect, it } from 'vitest';
import { eventually } from './eventually.ts';

it('eventually resolves with the first truthy value', async () => {
  const values = [undefined, null, false, 'there'];
  expect(await eventually(() => values.shift())).toBe('there');
});

it('eventually reports, before the test times out, what it waited for and the last value', async () => {
  const vain = eventually(
    () => Number('1') > 2,
    () => ({ status: 'crashed' }),
  );
  await expect(vain).rejects.toThrow(/waited in vain for .*> 2\nlast value: false\nsaw last: .*'crashed'/s);
}, 2_000);
