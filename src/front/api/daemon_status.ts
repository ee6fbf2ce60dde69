// What the daemon says of itself: docs/reference.md "System endpoints".
import { fail } from '../../protocol/errors.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { AppContext } from './route.ts';

export const livez = () => ({ status: 'ok' });

export function readyz({ desk }: { desk: AppContext }) {
  if (desk.phase !== 'ready') throw fail('daemon_busy', `the daemon is ${desk.phase}`);
  return { status: 'ok' };
}

export function versionInfo({ desk }: { desk: AppContext }) {
  const { version, pid, startedAt, front, stateDir, gatewayPort } = desk.daemonInfo;
  return {
    name: 'berth',
    version,
    pid,
    startedAt: localTime(startedAt),
    front,
    stateDir,
    gatewayPort,
    apiLevel: 1,
  };
}
