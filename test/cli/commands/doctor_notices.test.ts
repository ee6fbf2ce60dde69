// What `berth doctor` says about the targets of notices.
import { expect, it } from 'vitest';
import { noticeFindings } from '../../../src/cli/commands/doctor_notices.ts';
import type { Client } from '../../../src/client/create_client.ts';

const findings = (...notices: { target: string; error: string | null }[]) =>
  noticeFindings({ system: async () => ({ notices }) } as unknown as Client);

it('counts the targets of the configuration, and names those that failed', async () => {
  const removed = { target: 'removed rules', error: null };
  expect(await findings(removed)).toEqual([]);
  expect(await findings({ target: 'desktop', error: null }, removed)).toMatchObject([
    { state: 'ok', about: 'notices arrive (targets: 1)' },
  ]);
  expect(await findings({ target: 'exec', error: 'it ended with 1' }, removed)).toMatchObject([
    { state: 'warning', about: expect.stringContaining('notices do not arrive at exec: it ended with 1') },
  ]);
});
