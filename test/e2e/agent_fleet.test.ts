// Agents of several types at once, as a person and another agent work with them: docs/agents.md.
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, it } from 'vitest';
import { RunLedger } from '../../src/host/run_ledger.ts';
import { berth, cleanEnv, type Ran } from '../cli/berth_process.ts';
import { afterThisTest } from '../kit/actors.ts';
import { describeWithAgents, type ProgramName, prepareAgent } from '../kit/agent_programs.ts';
import { type Daemon, eventually, hostPid, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { type ModelServer, modelServer } from '../kit/model_server.ts';

const MAX_AGENTS = 10;
const [first] = ownPorts(MAX_AGENTS);
const CONFIG = `[agents]\nports = [${first}, ${first + MAX_AGENTS - 1}]\n`;
/** The only limit: ten programs that start at once take minutes on a busy machine. */
const LIMIT_MS = 600_000;
/** Ten of three types take two minutes of processor time: they run where BERTH_TEST_LONG_AGENTS is 1. */
const COUNTS: readonly (readonly [ProgramName, number])[] =
  process.env['BERTH_TEST_LONG_AGENTS'] === '1'
    ? [
        ['codex', 4],
        ['gemini', 3],
        ['opencode', 3],
      ]
    : [['codex', 3]];
const PROGRAMS = COUNTS.flatMap(([program, count]) => Array.from({ length: count }, () => program));
const NAMES = PROGRAMS.map((program, index) => `${program}-${index}`);

interface Walk {
  daemon: Daemon;
  model: ModelServer;
  /** Runs `berth agent` as from a shell of a person. */
  person(...args: string[]): Promise<Ran>;
  /** Runs `berth agent prompt`, which must succeed. */
  prompt(...args: string[]): Promise<void>;
  /** Resolves when all of them are in the state. */
  all(state: string, ...names: string[]): Promise<void>;
  /** Calls a tool as another agent does, and resolves with its text. */
  tool(name: string, input?: Record<string, unknown>): Promise<string>;
}

async function walkOn(daemon: Daemon, model: ModelServer): Promise<Walk> {
  const client = new Client({ name: 'test', version: '1' });
  afterThisTest(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${daemon.port}/mcp`)));
  const env = cleanEnv(newFolder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const person = (...args: string[]) => berth(['agent', ...args], { env });
  return {
    daemon,
    model,
    person,
    prompt: async (...args) => expect(await person('prompt', ...args)).toMatchObject({ code: 0 }),
    all: async (state, ...names) =>
      expect(await person('wait', ...names, '--for', state, '--each')).toMatchObject({
        code: 0,
      }),
    tool: async (name, input = {}) => {
      const { content } = await client.callTool({ name, arguments: input }, { timeout: LIMIT_MS });
      return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
    },
  };
}

async function spinUp({ daemon, model }: Walk): Promise<void> {
  for (const [index, program] of PROGRAMS.entries()) {
    const { cwd, env } = prepareAgent(program, { root: newFolder(), url: model.url });
    const spec = { name: NAMES[index], agent_type: program, cwd, baseEnv: env };
    expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
  }
}

/** The lines on the screen of an agent. */
const screenOf = async ({ daemon }: Walk, name: string): Promise<string[]> =>
  (await daemon.request('GET', `/v1/agents/${name}/screen`)).body.lines;

/** Whether the model has been told `texts` in one conversation, in this order. */
const wasTold = ({ model }: Walk, ...texts: string[]): boolean =>
  model.turns().some(({ messages }) => {
    const said = messages.map(({ text }) => text).join('\n');
    let from = 0;
    return texts.every((text) => {
      from = said.indexOf(text, from) + 1;
      return from > 0;
    });
  });

/** The machine starts again: nothing of before runs, and what the host has noted is of another boot. */
async function reboot({ stateDir, signal, exited, request }: Daemon): Promise<Daemon> {
  const { agents } = (await request('GET', '/v1/agents')).body;
  const pids: number[] = agents.flatMap(({ pid }: { pid: number | null }) => pid ?? []);
  process.kill(hostPid(stateDir), 'SIGKILL');
  signal('SIGKILL');
  await exited;
  for (const pid of pids.filter(isAlive)) process.kill(-pid, 'SIGKILL');
  await eventually(() => !pids.some(isAlive));
  const ledger = new RunLedger(join(stateDir, 'host', 'ledger'));
  for (const row of ledger.rows.values()) ledger.put({ ...row, boot: 'another' });
  return startDaemon({ config: CONFIG, stateDir });
}

describeWithAgents(`${NAMES.length} agents`, () => {
  it(
    'can be listed, answered, prompted, put to sleep and woken by a user and by another agent',
    async () => {
      const model = await modelServer();
      const before = await walkOn(await startDaemon({ config: CONFIG }), model);
      await spinUp(before);
      await before.all('idle', ...NAMES);
      const [asking = '', driven = '', served = ''] = [NAMES.at(0), NAMES.at(-2), NAMES.at(-1)];
      await Promise.all(NAMES.map((name) => before.prompt(name, `the word of ${name} is plum`)));
      await eventually(() => NAMES.every((name) => wasTold(before, `the word of ${name} is plum`)));

      // Two wait for an answer: one command says so, and each is answered from elsewhere.
      await before.prompt(asking, '--queue', 'run: touch answered');
      await before.prompt(served, '--queue', 'run: touch served');
      await before.all('blocked', asking, served);
      // The title of a terminal says so before the whole question is on its screen.
      let shown: unknown;
      await eventually(
        async () => {
          const text = await before.tool('agents');
          const screens = await Promise.all([asking, served].map((name) => screenOf(before, name)));
          shown = { text, screens };
          return text.includes('touch answered') && text.includes('touch served');
        },
        () => shown,
      );
      const { stdout } = await before.person('states');
      expect(stdout.split('\n')[1]).toContain('blocked');
      expect(stdout).toContain(`${asking} asks:`);
      expect(stdout).toContain('touch answered');
      const refused = await before.person('prompt', asking, 'now');
      expect([refused.code, refused.stderr]).toEqual([8, expect.stringContaining('touch answered')]);
      expect(await before.tool('agent_prompt', { name: served, text: 'now' })).toMatch(
        /^agent_blocked[\s\S]*touch served[\s\S]*agent_keys/,
      );
      expect(await before.tool('agents')).toContain('touch served');
      await before.person('keys', asking, 'Enter');
      await before.tool('agent_keys', { name: served, keys: ['Enter'] });
      expect(
        await before.tool('agent_wait', {
          names: [asking, served],
          for: ['idle'],
          mode: 'all',
        }),
      ).toContain('idle');

      // A script drives one to its end.
      const told = await before.person('prompt', driven, '--queue', '--wait', 'say the first thing');
      expect([told.code, told.stdout]).toEqual([0, expect.stringContaining('say the first thing')]);
      await eventually(() => wasTold(before, `the word of ${driven} is plum`, 'say the first thing'));

      await before.all('idle', ...NAMES);
      expect(await before.tool('agent_sleep', { name: served })).toContain('is asleep');
      const slept = await before.person('sleep', ...NAMES);
      expect([slept.code, slept.stdout.split('\n')]).toEqual([
        0,
        expect.arrayContaining([`✓ ${asking} is sleeping`, `· ${served} is sleeping`]),
      ]);
      expect((await before.person('sleep', 'nobody')).stderr).toContain('there is no agent nobody');
      // One that runs when the machine ends is found asleep too.
      expect(await before.tool('agent_wake', { name: served })).toContain('awake');

      const after = await walkOn(await reboot(before.daemon), model);
      const { body } = await after.daemon.request('GET', '/v1/agents');
      expect(body.agents.map(({ state }: { state: string }) => state)).toEqual(NAMES.map(() => 'asleep'));
      const asked = { name: served, text: 'which word was it', wait: 'idle', queue: true };
      expect(await after.tool('agent_prompt', asked)).toContain(`${served} is idle`);
      const rest = NAMES.filter((name) => name !== served);
      await Promise.all(rest.map((name) => after.prompt(name, '--queue', 'which word was it')));
      for (const name of NAMES)
        await eventually(() => wasTold(after, `the word of ${name} is plum`, 'which word was it'));
    },
    LIMIT_MS,
  );
});
