// What the daemon says of itself: docs/reference.md "System endpoints".
import { fail } from '../protocol/errors.ts';
import { localTime } from '../protocol/time.ts';
import type { Desk } from './route.ts';

export const live = () => ({ status: 'ok' });

export function ready({ desk }: { desk: Desk }) {
  if (desk.phase !== 'ready') throw fail('daemon_busy', `the daemon is ${desk.phase}`);
  return { status: 'ok' };
}

export function version({ desk }: { desk: Desk }) {
  const { version, pid, startedAt, front, stateDir, gatewayPort } = desk.about;
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
