// Errors of requests that no route has seen: while the front begins to listen, and for a defect of the guard.
import { expect, it, vi } from 'vitest';
import { Guard } from '../../../src/front/api/guard.ts';
import type * as listen from '../../../src/front/server/listen.ts';
import { type Answer, send } from '../../kit/http_request.ts';
import { expectError, SERVERS, startFront } from '../kit.ts';

const early: Answer[] = [];
vi.mock('../../../src/front/server/listen.ts', async (original) => {
  const real = await original<typeof listen>();
  const listenOnAll: typeof real.listenOnAll = async (...args) => {
    const port = await real.listenOnAll(...args);
    early.push(await send(port, 'GET', '/v1/services'));
    return port;
  };
  return { ...real, listenOnAll };
});

it.each(SERVERS)('a request before the port is known gets daemon_busy on %s', async (server) => {
  early.length = 0;
  await startFront({ server });
  const [answer] = early;
  if (!answer) throw new Error('nothing was answered');
  expectError(answer, 'daemon_busy');
});

it.each(SERVERS)('a defect of the guard causes internal on %s', async (server) => {
  const front = await startFront({ server });
  const check = vi.spyOn(Guard.prototype, 'check').mockImplementation(() => {
    throw new Error('a defect');
  });
  const answer = await front.request('GET', '/v1/services');
  check.mockRestore();
  expectError(answer, 'internal');
  expect(front.defects).toHaveLength(1);
});
