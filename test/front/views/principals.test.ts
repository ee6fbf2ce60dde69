// The streams that depend on a user's token end with it: docs/reference.md "Login".
import { expect, it } from 'vitest';
import { Principals } from '../../../src/front/views/principals.ts';
import { PRINCIPALS } from '../../../src/settings/cloud_limits.ts';
import { must } from '../../kit/must.ts';
import { settableClock } from '../../kit/policies.ts';

const HOUR = 3_600_000;
const TOKEN = 'head.claims.signature';

/** The open stream of a user whose token expires in an hour. */
async function opened() {
  const clock = settableClock('2030-01-07T12:00Z');
  const principals = new Principals(clock);
  const expiresAt = clock.now() + HOUR;
  principals.verifier = { verify: async () => ({ subject: 'anna', groups: [], expiresAt }) };
  await principals.verify(TOKEN);
  const stream = {
    isOpen: true,
    destroy() {
      stream.isOpen = false;
    },
  };
  principals.addOpen(must(principals.findUser(TOKEN)), stream);
  return { clock, principals, stream };
}

it("a user's stream ends when the token expires, not before", async () => {
  const { clock, principals, stream } = await opened();
  await clock.advance(HOUR - 1);
  expect([stream.isOpen, principals.findUser(TOKEN)]).toEqual([true, expect.anything()]);
  await clock.advance(1);
  expect([stream.isOpen, principals.findUser(TOKEN)]).toEqual([false, null]);
});

it("a user's stream ends soon after a machine that was suspended meanwhile continues", async () => {
  const { clock, stream } = await opened();
  await clock.advance(HOUR / 2);
  clock.set('2030-01-07T13:00Z');
  await clock.advance(PRINCIPALS.lookMs);
  expect(stream.isOpen).toBe(false);
});
