// A real coding agent that works with a service through the tools of `berth mcp`, as `berth agent init` sets it
// up. docs/reference.md "MCP over stdio", "Agent init".
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { describeWithAgents, type PreparedAgent, prepareAgent } from '../kit/agent_programs.ts';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { type ModelScript, modelServer } from '../kit/model_server.ts';

/** What the model asks of Berth, one after the other. */
const STEPS: readonly (readonly [tool: string, input: object])[] = [
  ['start', { name: 'web' }],
  ['wait_for', { name: 'web', text: 'serving' }],
  ['logs', { name: 'web' }],
  ['stop', { name: 'web' }],
];

/** Asks for the steps, by the name that the program gives each tool, and says `done` at the end. */
function steps(): ModelScript {
  let next = 0;
  return ({ tools }) => {
    const named = (name: string) =>
      tools.find((tool) => tool.endsWith(`berth_${name}`) || tool.endsWith(`berth__${name}`));
    if (!named('start')) return undefined;
    const [name, input] = STEPS[next] ?? [];
    next += 1;
    const tool = name && named(name);
    return tool && input ? { tool, arguments: input } : 'done';
  };
}

const TOKEN = 'the-token-of-the-person-here';

/** The prepared agent with `berth` in its PATH. */
function withBerth(agent: PreparedAgent): PreparedAgent {
  const programs = folder();
  const shim = join(programs, 'berth');
  writeFileSync(shim, `#!/bin/sh\nexec ${process.execPath} ${BIN} "$@"\n`);
  chmodSync(shim, 0o755);
  return { ...agent, env: { ...agent.env, PATH: [programs, agent.env['PATH']].join(delimiter) } };
}

/** Runs `command` of the prepared agent with `berth` in its PATH. */
async function run(agent: PreparedAgent, daemon: Daemon, command: string): Promise<string> {
  const here = { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile };
  const env = { ...withBerth(agent).env, ...here };
  const child = spawn('sh', ['-c', command], { cwd: agent.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return out + errors;
}

describeWithAgents('a real agent', () => {
  it('starts a service, waits, reads its log and stops it', async () => {
    const program = 'opencode';
    const daemon = await daemonOf();
    await daemon.request('POST', '/v1/services', {
      name: 'web',
      port: null,
      cmd: 'sleep 0.2; echo serving; exec sleep 1000',
    });
    const model = await modelServer(steps());
    const root = folder();
    const agent = prepareAgent(program, { root, url: model.url, asks: false });
    mkdirSync(join(agent.cwd, '.git'), { recursive: true });
    const env = cleanEnv(root, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
    expect(await berth(['agent', 'init', `--${program}`, '--yes'], { cwd: agent.cwd, env })).toMatchObject({
      code: 0,
    });
    const output = await run(agent, daemon, 'opencode run go');
    const { events } = (await daemon.request('GET', '/v1/events/history?names=web')).body;
    const types = events.map((event: any) => event.type);
    expect(types, output).toEqual(['service.registered', 'service.started', 'service.stopped']);
    // What the tools have answered is in the last request.
    const told = JSON.stringify(model.turns().at(-1)?.messages);
    expect(told).toContain('web is running');
    expect(told).toContain('serving');
    expect(told).toContain('web is stopped');
  });

  it.each(['codex', 'gemini'] as const)(
    'that keeps its token from what it starts acts with no more rights: %s',
    async (program) => {
      const daemon = await daemonOf({ config: `[auth]\ntoken = "${TOKEN}"\n` });
      const person = { authorization: `Bearer ${TOKEN}` };
      const ask = async (method: string, path: string, body?: object) => {
        const answer = await daemon.request(method, path, body, person);
        expect(answer.status, answer.text).toBeLessThan(300);
        return answer.body;
      };
      await ask('POST', '/v1/services', { name: 'other', port: null, cmd: 'exec sleep 1000' });
      await ask('POST', '/v1/services/other/start');
      const model = await modelServer(({ tools, messages }) => {
        if (messages.at(-1)?.role === 'tool') return 'done';
        const tool = tools.find((name) => /^mcp_+berth(_+stop)?$/.test(name));
        // codex calls the tools of a server within its namespace.
        const named = tool === 'mcp__berth' ? { tool: 'stop', namespace: tool } : tool && { tool };
        return named ? { ...named, arguments: { name: 'other' } } : undefined;
      });
      const root = folder();
      const agent = prepareAgent(program, { root, url: model.url, asks: false });
      const { cwd, env } = withBerth(agent);
      const init = ['agent', 'init', `--${program}`, '--yes'];
      const own = cleanEnv(root, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
      expect(await berth(init, { cwd, env: own })).toMatchObject({ code: 0 });
      // codex would ask a person whether it may run them.
      rmSync(join(cwd, '.codex/hooks.json'), { force: true });
      await ask('POST', '/v1/stacks', { project: 'shop', path: cwd });
      const spec = { name: 'shop--bot', stack: 'shop', agent_type: program, cwd, baseEnv: env };
      await ask('POST', '/v1/agents/spinup', spec);
      const bot = async () => (await ask('GET', '/v1/agents')).agents[0];
      await eventually(async () => (await bot()).state === 'idle');
      await ask('POST', '/v1/agents/shop--bot/prompt', { text: 'go', queue: true });
      await eventually(
        async () => {
          if ((await bot()).state === 'blocked')
            await ask('POST', '/v1/agents/shop--bot/keys', { keys: ['Enter'] });
          return JSON.stringify(model.turns().at(-1)?.messages ?? []).includes(
            'of the stack shop, and other is not',
          );
        },
        () => model.turns().at(-1)?.messages.slice(-3),
      );
      expect(await ask('GET', '/v1/services/other')).toMatchObject({ status: 'running' });
    },
  );
});
