// Changes through real sockets, on both servers; the owners are stand-ins.
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import type { AgentsProtocol } from '../../../src/protocol/agents.ts';
import { ERRORS, fail } from '../../../src/protocol/errors.ts';
import type { GroupsProtocol } from '../../../src/protocol/groups.ts';
import type { RegistryProtocol } from '../../../src/protocol/registry.ts';
import type { ServiceProtocol, StopReply } from '../../../src/protocol/service.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { expectError, type FrontSetup, SERVERS, specRow, startFront, startWithServices } from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });
  const withServices = (setup: FrontSetup = {}) => startWithServices({ server, ...setup });

  describe('changes', () => {
    const stopAnswer: StopReply = {
      name: 'web',
      status: 'stopped',
      exitCode: null,
      signal: 'SIGTERM',
      escalated: false,
      reaped: 2,
      left: [],
      portFree: true,
      ms: 12,
    };

    it('of services go to their actors', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web', {
        start: ({ wait }) => ({ name: 'web', status: wait ? 'running' : 'starting', pid: 5 }),
        restart: () => ({ name: 'web', status: 'running', pid: 6 }),
        stop: () => stopAnswer,
      });
      const registry = await front.stand<RegistryProtocol>('registry', { remove: () => ({ port: 3000 }) });
      const answers = [
        await front.request('POST', '/v1/services/web/start'),
        await front.request('POST', '/v1/services/web/start?timeout=7&wait=true'),
        await front.request('POST', '/v1/services/web/start?wait=false'),
        await front.request('POST', '/v1/services/web/restart?timeout=0&grace=3'),
        await front.request('POST', '/v1/services/web/stop'),
        await front.request('POST', '/v1/services/web/stop?grace=0'),
        await front.request('DELETE', '/v1/services/web'),
      ];
      expect(answers.map(({ status, text }) => [status, text])).toEqual([
        [200, '{"name":"web","status":"running","pid":5}'],
        [200, '{"name":"web","status":"running","pid":5}'],
        [202, '{"name":"web","status":"starting","pid":5}'],
        [200, '{"name":"web","status":"running","pid":6}'],
        [200, JSON.stringify(stopAnswer)],
        [200, JSON.stringify(stopAnswer)],
        [200, '{"removed":true,"name":"web"}'],
      ]);
      expect(service.received).toEqual([
        { kind: 'start', message: { timeoutMs: null, wait: true, awake: false } },
        { kind: 'start', message: { timeoutMs: 7, wait: true, awake: false } },
        { kind: 'start', message: { timeoutMs: null, wait: false, awake: false } },
        { kind: 'restart', message: { timeoutMs: 0, graceMs: 3 } },
        { kind: 'stop', message: { graceMs: null } },
        { kind: 'stop', message: { graceMs: 0 } },
      ]);
      expect(registry.of('remove')).toEqual([{ name: 'web', agent: false, graceMs: null }]);
    });

    it('of unknown names wake no actor', async () => {
      const front = await withServices();
      for (const path of ['start', 'stop', 'restart'])
        expectError(await front.request('POST', `/v1/services/nothing/${path}`), 'unknown_service');
      expectError(await front.request('DELETE', '/v1/services/nothing'), 'unknown_service');
      expectError(await front.request('DELETE', '/v1/agents/web'), 'unknown_agent');
      expectError(await front.request('POST', '/v1/groups/nothing/start'), 'unknown_group');
      expectError(await front.request('POST', '/v1/groups/nothing/stop'), 'unknown_group');
    });

    it('of groups go to the groups actor', async () => {
      const front = await withServices();
      const groups = await front.stand<GroupsProtocol>('groups', {
        start: () => ({ services: [{ name: 'web', status: 'running', pid: 5 }] }),
        stop: () => ({ services: [{ name: 'web', status: 'stopped', exitCode: 0 }] }),
      });
      expect((await front.request('POST', '/v1/groups/site/start?timeout=5')).text).toBe(
        '{"name":"site","services":[{"name":"web","status":"running","pid":5}]}',
      );
      expect((await front.request('POST', '/v1/groups/site/stop')).text).toBe(
        '{"name":"site","services":[{"name":"web","status":"stopped","exitCode":0}]}',
      );
      expect(groups.received.map(({ message }) => message)).toEqual([
        { name: 'site', timeoutMs: 5 },
        { name: 'site', graceMs: null },
      ]);
    });

    it('of agents go to the agents actor', async () => {
      const front = await start();
      const agents = await front.stand<AgentsProtocol>('agents', {
        spinup: ({ input }) => ({ name: input.name, port: 8100, pid: 9 }),
        remove: ({ name }) => ({ name, port: 8100 }),
      });
      const spun = await front.request('POST', '/v1/agents/spinup', {
        body: { name: 'my_bot', agent_type: 'ollama' },
      });
      expect([spun.status, spun.text]).toEqual([
        201,
        '{"port":8100,"name":"my_bot","active":true,"hostname":"my-bot.agents.localhost","pid":9,"url":"http://localhost:8100","gatewayUrl":"http://my-bot.agents.localhost:11612/","agent_type":"ollama"}',
      ]);
      expect(agents.of('spinup')[0]?.input).toMatchObject({ name: 'my_bot', agentType: 'ollama', cols: 120 });
      front.front.setGatewayPort(null);
      const other = await front.request('POST', '/v1/agents/spinup', { body: { name: 'b', cmd: 'x' } });
      expect(other.body).toMatchObject({ gatewayUrl: null, agent_type: null });
      const agent = { agentType: null, hostname: 'spinup.agents.localhost', cols: 1, rows: 1 };
      front.views.tell('specs', { rows: [specRow('spinup', { agent, group: 'Agents' })] });
      const removed = await front.request('DELETE', '/v1/agents/spinup');
      expect([removed.status, removed.text]).toEqual([200, '{"removed":true,"name":"spinup","port":8100}']);
    });

    it('that fail return the code, hint and details of the failure', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web');
      for (const code of Object.keys(ERRORS) as (keyof typeof ERRORS)[]) {
        service.answer({
          start: () => {
            throw fail(code, `it is ${code}`, code === 'ready_timeout' ? { hint: 'last lines' } : {});
          },
        });
        const answer = await front.request('POST', '/v1/services/web/start');
        expectError(answer, code);
        expect(answer.body.message).toBe(`it is ${code}`);
        expect(answer.body.hint).toBe(code === 'ready_timeout' ? 'last lines' : ERRORS[code].hint);
      }
      expect(front.defects).toEqual([]);
    });

    it('that reach a busy, ended or broken part return that error', async () => {
      const front = await withServices();
      expectError(await front.request('POST', '/v1/services/web/start'), 'daemon_busy');
      const service = await front.stand<ServiceProtocol>('service:web');
      for (const [code, seen] of [
        ['overloaded', 'daemon_busy'],
        ['deadline', 'daemon_busy'],
        ['gone', 'daemon_busy'],
        ['crashed', 'internal'],
      ] as const) {
        service.answer({
          start: () => {
            throw new Failure(code, 'x');
          },
        });
        expectError(await front.request('POST', '/v1/services/web/start'), seen);
      }
      service.answer({
        start: () => {
          throw new Failure('no_code_of_ours', 'x');
        },
      });
      expectError(await front.request('POST', '/v1/services/web/start'), 'internal');
      expect(front.defects).toHaveLength(1);
      service.answer({
        start: () => {
          throw new Error('a defect');
        },
      });
      expectError(await front.request('POST', '/v1/services/web/start'), 'internal');
      expect(front.crashes.splice(0)).toHaveLength(1);
    });

    it('continue when the client disconnects', async () => {
      const front = await withServices();
      let finish = (): void => {};
      const service = await front.stand<ServiceProtocol>('service:web', {
        start: () =>
          new Promise((resolve) => {
            finish = () => resolve({ name: 'web', status: 'running', pid: 5 });
          }),
      });
      const socket = net.connect(front.port, '127.0.0.1', () =>
        socket.write(
          `POST /v1/services/web/start HTTP/1.1\r\nHost: localhost:${front.port}\r\nContent-Length: 0\r\n\r\n`,
        ),
      );
      await service.next('start');
      socket.destroy();
      expect((await front.request('GET', '/livez')).status).toBe(200);
      finish();
      service.answer({ start: () => ({ name: 'web', status: 'running', pid: 6 }) });
      expect((await front.request('POST', '/v1/services/web/start')).body.pid).toBe(6);
    });
  });
});
