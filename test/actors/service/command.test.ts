// docs/reference.md "Commands": those that wait for their terminals, between stand-ins and in virtual time.
import { expect, it } from 'vitest';
import { serviceAddress } from '../../../src/protocol/address.ts';
import type { CommandInput, CommandProtocol } from '../../../src/protocol/commands.ts';
import type { TerminalProtocol, TerminalViewersProtocol } from '../../../src/protocol/terminal.ts';
import { COMMAND } from '../../../src/settings/limits.ts';
import { quiet, supervise } from '../../kit/service.ts';

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

/** A command whose process is being started for its viewer, which takes a second. */
async function starting() {
  const world = await supervise({});
  await world.begin();
  await world.services.stand<TerminalViewersProtocol>('viewers');
  world.host.spawnMs = 1_000;
  const address = serviceAddress('run-0000000000000001');
  await world.services.ref<CommandProtocol>(address).ask('prepare', { input: INPUT });
  const terminal = world.services.ref<TerminalProtocol>(address);
  const attached = terminal.ask('attach', { viewer: 'one' });
  const started = async (): Promise<void> => {
    await quiet();
    await world.advance(1_000);
    await attached;
    await quiet();
  };
  return { host: world.host, terminal, started };
}

it('a command gets what was typed, and the size, while it was being started', async () => {
  const { host, terminal, started } = await starting();
  terminal.tell('resize', { cols: 100, rows: 30 });
  terminal.tell('input', { viewer: 'one', data: Buffer.from('go\n') });
  await started();
  expect(host.typed).toEqual(['go\n']);
  expect(host.sizes).toEqual([[100, 30]]);
});

it('a command whose caller leaves while it is being started is stopped', async () => {
  const { host, terminal, started } = await starting();
  terminal.tell('detach', { viewer: 'one' });
  await quiet();
  expect(host.stops).toEqual([]);
  await started();
  expect(host.stops).toMatchObject([{ run: host.made[0] }]);
});
