// docs/reference.md "Crash of the process host": what ends a host, and what does not.
import { expect, test } from 'vitest';
import { connectDaemon, isRunning, newState, useHost } from '../kit/process_host.ts';

useHost();

test('a signal to end that reaches daemon and host at once leaves the host to stop what runs', async () => {
  const stateDir = newState();
  const daemon = await connectDaemon(stateDir);
  const { hostPid } = daemon.connection;
  const started = await daemon.spawn('web', 'exec sleep 1000');
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.kill(hostPid, signal);
  expect(await daemon.stop(started)).toMatchObject({ reaped: 1, left: [] });
  expect(isRunning(hostPid)).toBe(true);
});
