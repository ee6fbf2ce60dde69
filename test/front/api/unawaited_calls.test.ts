// Calls with wait=false: answered at once, with their outcome or the present state.
import { describe, expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { HTTP } from '../../../src/settings/limits.ts';
import { settle, virtualClock } from '../../kit/actors.ts';
import { expectError, SERVERS, startWithServices } from '../kit.ts';

const STARTED = { name: 'web', status: 'running', pid: 6 } as const;

describe.each(SERVERS)('calls with wait=false, %s', (server) => {
  it('have the usual answer if they end at once', async () => {
    const front = await startWithServices({ server, clock: virtualClock() });
    await front.stand<ServiceProtocol>('service:web', {
      restart: () => STARTED,
      sleep: () => {
        throw fail('sleep_refused', 'it has no sleep');
      },
    });
    const restarted = await front.request('POST', '/v1/services/web/restart?wait=false');
    expect([restarted.status, restarted.body]).toEqual([200, STARTED]);
    expectError(await front.request('POST', '/v1/services/web/sleep?wait=false'), 'sleep_refused');
    expectError(await front.request('POST', '/v1/services/nothing/stop?wait=false'), 'unknown_service');
  });

  it('are answered with the present state if not, and their failure is nobody else’s', async () => {
    const clock = virtualClock();
    const front = await startWithServices({ server, clock });
    let end = (): void => undefined;
    const service = await front.stand<ServiceProtocol>('service:web', {
      restart: () =>
        new Promise((_, reject) => {
          end = () => reject(fail('start_failed', 'at last'));
        }),
    });
    const asked = front.request('POST', '/v1/services/web/restart?timeout=7&grace=3&wait=false');
    expect(await service.next('restart')).toEqual({ timeoutMs: 7, graceMs: 3 });
    await clock.advance(HTTP.unawaitedMs);
    const { status, body } = await asked;
    expect([status, body]).toEqual([202, { name: 'web', status: 'running', pid: 77 }]);
    end();
    await settle();
    expect(front.defects).toEqual([]);
  });

  it('with wait=true are awaited', async () => {
    const clock = virtualClock();
    const front = await startWithServices({ server, clock });
    let end = (): void => undefined;
    const service = await front.stand<ServiceProtocol>('service:web', {
      restart: () =>
        new Promise((resolve) => {
          end = () => resolve(STARTED);
        }),
    });
    const asked = front.request('POST', '/v1/services/web/restart?wait=true');
    await service.next('restart');
    await clock.advance(HTTP.unawaitedMs);
    end();
    const { status, body } = await asked;
    expect([status, body]).toEqual([200, STARTED]);
  });
});
