// A real coding agent that works with a service through the tools of `berth mcp`, as `berth agent init` sets it
// up. docs/reference.md "MCP over stdio", "Agent init".
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { describeWithAgents, type PreparedAgent, prepareAgent } from '../kit/agent_programs.ts';
import { BIN } from '../kit/built_program.ts';
import type { Daemon } from '../kit/daemon.ts';
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

/** Runs `command` of the prepared agent with `berth` in its PATH. */
async function run(agent: PreparedAgent, daemon: Daemon, command: string): Promise<string> {
  const programs = folder();
  const shim = join(programs, 'berth');
  writeFileSync(shim, `#!/bin/sh\nexec ${process.execPath} ${BIN} "$@"\n`);
  chmodSync(shim, 0o755);
  const env = {
    ...agent.env,
    PATH: [programs, agent.env['PATH']].join(delimiter),
    BERTH_STATE_DIR: daemon.stateDir,
    BERTH_CONFIG: daemon.configFile,
  };
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
});
