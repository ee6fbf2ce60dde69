// What still works where a native package does not load: docs/reference.md "Platforms".
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { spawnHost } from '../../src/adapters/host/spawn_host.ts';
import { bundle } from '../kit/bundle.ts';
import { connectDaemon, eventually, hostsOf, newState, useHost } from '../kit/process_host.ts';

useHost();

const pty = { cols: 80, rows: 24 };

test('without koffi services run, end and are stopped; agents are refused with the reason', async () => {
  const entry = await bundle('workers/host.ts', 'koffi');
  const stateDir = newState();
  const daemon = await connectDaemon(stateDir, { entry });
  const short = await daemon.spawn('short', 'echo hello; exit 3');
  expect(await daemon.ended(short)).toMatchObject({ exitCode: 3 });
  expect(daemon.tail('short')).toEqual(['hello']);
  const tree = await daemon.spawn('tree', '(setsid sh -c "echo there; exec sleep 61" &); exec sleep 60');
  await eventually(() => daemon.tail('tree').length > 0);
  expect(await daemon.stop(tree)).toMatchObject({ signal: 'SIGTERM', left: [], reaped: 2 });
  await expect(daemon.spawn('agent', 'true', { pty })).rejects.toMatchObject({
    code: 'start_failed',
    message: 'agent could not be started: terminals need koffi, which does not load here',
  });
  expect(readFileSync(join(stateDir, 'host', 'host.log'), 'utf8')).toContain('koffi does not load');
  // Only the socket keeps a second host away.
  spawnHost(stateDir, entry);
  await eventually(() => hostsOf(stateDir).length === 2);
  await eventually(() => hostsOf(stateDir).length === 1);
  expect(hostsOf(stateDir)).toEqual([daemon.connection.hostPid]);
});

test('without node-pty agents are refused with the reason', async () => {
  const daemon = await connectDaemon(newState(), { entry: await bundle('workers/host.ts', 'node-pty') });
  await expect(daemon.spawn('agent', 'true', { pty })).rejects.toMatchObject({
    code: 'start_failed',
    message: expect.stringContaining('terminals need node-pty, which does not load here'),
  });
  expect(await daemon.ended(await daemon.spawn('web', 'exit 0'))).toMatchObject({ exitCode: 0 });
});
