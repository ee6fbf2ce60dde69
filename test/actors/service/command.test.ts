// docs/reference.md "Commands": those that wait for their terminals, between stand-ins and in virtual time.
import { expect, it } from 'vitest';
import { serviceAddress } from '../../../src/protocol/address.ts';
import type { CommandInput, CommandProtocol } from '../../../src/protocol/commands.ts';
import { COMMAND } from '../../../src/settings/limits.ts';
import { supervise } from '../../kit/service.ts';

const INPUT: CommandInput = {
  cmd: 'true',
  service: null,
  cwd: '/',
  baseEnv: null,
  env: [],
  cols: 80,
  rows: 24,
};

it('a limited number of unattached commands is kept, for a limited time', async () => {
  const world = await supervise({});
  await world.begin();
  let made = 0;
  const prepare = (): Promise<null> => {
    made += 1;
    const id = `run-${String(made).padStart(16, '0')}`;
    return world.services.ref<CommandProtocol>(serviceAddress(id)).ask('prepare', { input: INPUT });
  };
  for (let count = 0; count < COMMAND.maxWaiting; count += 1) await prepare();
  await expect(prepare()).rejects.toMatchObject({ code: 'daemon_busy' });
  await world.advance(COMMAND.attachTimeoutMs);
  for (let count = 0; count < COMMAND.maxWaiting; count += 1) await prepare();
  await expect(prepare()).rejects.toMatchObject({ code: 'daemon_busy' });
});
