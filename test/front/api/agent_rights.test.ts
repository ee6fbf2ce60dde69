// What the front lets an agent do with its token, without processes: docs/reference.md "Agent tokens".
// test/e2e/agent_rights.test.ts asks for every operation.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { AgentTokens } from '../../../src/adapters/agent_tokens.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { statePaths } from '../../../src/settings/state_paths.ts';
import { afterThisTest, settle } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { DAEMON_INFO, expectError, runningState, specRow, sse, startFront } from '../kit.ts';

const AGENT = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
/** A service that it may register. */
const OWN = { name: 'shop--new', stack: 'shop', cmd: 'true', port: null };
const RUN = '0123456789abcdef';

/** A front with the agents `shop--bot` and `blog--bot`; asks with the token of `shop--bot`. */
async function asAgent() {
  const stateDir = mkdtempSync(join(tmpdir(), 'berth-rights-'));
  afterThisTest(() => rmSync(stateDir, { recursive: true }));
  const front = await startFront({ daemonInfo: { ...DAEMON_INFO, stateDir } });
  const agent = (stack: string) => specRow(`${stack}--bot`, { agent: AGENT, group: 'Agents', stack });
  const web = (stack: string) => specRow(`${stack}--web`, { stack });
  front.views.tell('specs', { rows: ['shop', 'blog'].flatMap((stack) => [agent(stack), web(stack)]) });
  const living = (run: string) => {
    const state = runningState('shop--bot', 5);
    front.views.tell('states', { rows: [{ ...state, process: { ...must(state.process), run } }] });
  };
  living(RUN);
  await settle();
  const token = new AgentTokens(statePaths(stateDir).agentKey).issue({ name: 'shop--bot', run: RUN });
  const headers = { authorization: `Bearer ${token}` };
  const ask = (method: string, path: string, body?: unknown) =>
    front.request(method, path, { headers, body });
  return { ask, living, front, headers };
}

it('an agent is limited to its stack', async () => {
  const { ask } = await asAgent();
  const listed = (await ask('GET', '/v1/services')).body.services.map(({ name }: { name: string }) => name);
  expect(listed).toEqual(['shop--bot', 'shop--web']);
  expect((await ask('GET', '/v1/services/shop--web')).status).toBe(200);
  for (const [method, path, body] of [
    ['GET', '/v1/services/blog--web'],
    ['POST', '/v1/services/blog--web/stop'],
    ['POST', '/v1/agents/blog--bot/keys', { keys: ['Enter'] }],
    ['POST', '/v1/agents/spinup', { name: 'blog--new', cmd: 'true' }],
    ['POST', '/v1/services', { ...OWN, dependsOn: ['blog--web'] }],
  ] as const)
    expectError(await ask(method, path, body), 'forbidden_owner');
});

it('an agent may report only its own state, and share no terminal', async () => {
  const { ask } = await asAgent();
  expectError(await ask('POST', '/v1/agents/shop--web/state', { state: 'idle' }), 'forbidden_owner');
  expectError(await ask('POST', '/v1/agents/shop--bot/share', { minutes: 5 }), 'forbidden_owner');
});

it('the token of a process that has ended is refused', async () => {
  const { ask, living } = await asAgent();
  living('f'.repeat(16));
  await settle();
  expectError(await ask('GET', '/v1/services'), 'unauthorized');
});

it('a stream that an agent follows ends when its service leaves the stack', async () => {
  const { ask, front, headers } = await asAgent();
  const empty = { start: 0, end: 0, run: null, parts: [], times: [] };
  const service = await front.stand<ServiceProtocol>('service:shop--web', {
    tailStart: () => 0,
    read: () => empty,
  });
  const log = await sse(front.port, '/v1/services/shop--web/logs/stream', headers);
  expect(log.status).toBe(200);
  expect(await service.next('follow')).toEqual({ on: true });
  front.views.tell('specs', { rows: [specRow('shop--web', { stack: null })] });
  await log.closed;
  expect(await service.next('follow')).toEqual({ on: false });
  expectError(await ask('GET', '/v1/services/shop--web/logs'), 'forbidden_owner');
  expect((await ask('GET', '/v1/services')).status).toBe(200);
});
