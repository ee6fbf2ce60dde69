// docs/reference.md "State of an agent": an agent in the shell of another one, with real programs.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CODING_AGENTS } from '../../src/protocol/coding_agents.ts';
import { describeWithAgents, prepareAgent } from '../kit/agent_programs.ts';
import { BIN } from '../kit/built_program.ts';
import { eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { lastPrompt, modelServer } from '../kit/model_server.ts';

const [first] = ownPorts(3);
const CONFIG = `[agents]\nports = [${first}, ${first + 2}]\n`;

const FLAGS = '--skip-git-repo-check --dangerously-bypass-hook-trust';

/** The hooks of `berth agent init`, with the program as it is built. */
const HOOKS = Object.fromEntries(
  Object.entries(CODING_AGENTS.codex.hooks.events).map(([event, state]) => {
    const command = `${process.execPath} ${BIN} agent hook ${state} --type codex`;
    return [event, [{ hooks: [{ type: 'command', command }] }]];
  }),
);

describeWithAgents('a real agent', () => {
  it('keeps its state and conversation while it runs one of its type in its shell', async () => {
    const root = newFolder();
    const [nested, over] = [join(root, 'nested'), join(root, 'over')];
    const model = await modelServer((request) => {
      if (lastPrompt(request) !== 'nest' || request.messages.at(-1)?.role === 'tool') return 'heard';
      // The shell is a login shell, which has the PATH of the system.
      const run = `PATH='${env['PATH']}' codex exec ${FLAGS} hello </dev/null`;
      const cmd = `${run}; echo $? > ${nested}; until [ -e ${over} ]; do sleep 0.1; done`;
      return { tool: 'exec_command', arguments: { cmd, yield_time_ms: 30_000 } };
    });
    const { cwd, env } = prepareAgent('codex', { root, url: model.url, asks: false });
    mkdirSync(join(cwd, '.codex'));
    writeFileSync(join(cwd, '.codex', 'hooks.json'), JSON.stringify({ hooks: HOOKS }));
    const daemon = await startDaemon({ config: CONFIG });
    const cmd = 'codex --no-daemon --dangerously-bypass-hook-trust';
    // As if an agent had started it.
    const baseEnv = { ...env, CODEX_THREAD_ID: 'another' };
    const spec = { name: 'bot', agent_type: 'codex', cmd, cwd, baseEnv };
    expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
    expect((await daemon.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
    await daemon.request('POST', '/v1/agents/bot/prompt', { text: 'hello', wait: 'idle' });
    const agent = async () => (await daemon.request('GET', '/v1/agents/bot')).body;
    const hook = async () => (await daemon.request('GET', '/v1/agents/bot/explain')).body.authorities[0];
    await eventually(async () => (await hook()).state === 'idle', hook);
    const { sessionId } = await agent();
    expect(sessionId).toEqual(expect.any(String));

    await daemon.request('POST', '/v1/agents/bot/prompt', { text: 'nest' });
    await eventually(() => existsSync(nested) && readFileSync(nested, 'utf8') === '0\n', agent);
    expect(await hook()).toMatchObject({ state: 'working' });
    expect(await agent()).toMatchObject({ state: 'working', sessionId });
    writeFileSync(over, '');
    await eventually(async () => (await hook()).state === 'idle', hook);
    expect(await agent()).toMatchObject({ sessionId });
  }, 120_000);
});
