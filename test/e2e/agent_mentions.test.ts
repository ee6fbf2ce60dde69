// docs/reference.md "Prompt" with real programs that complete what is typed, or refuse it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeWithAgents, PROGRAM_NAMES, type ProgramName, prepareAgent } from '../kit/agent_programs.ts';
import { newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { lastPrompt, modelServer } from '../kit/model_server.ts';

const [first] = ownPorts(1);
const CONFIG = `[agents]\nports = [${first}, ${first}]\n`;
/** gemini and opencode take long to start: they run where BERTH_TEST_LONG_AGENTS is 1. */
const PROGRAMS = process.env['BERTH_TEST_LONG_AGENTS'] === '1' ? PROGRAM_NAMES : (['codex'] as const);

/** What each would complete in a folder with the file foo.txt, or continue on a new line. */
const CHANGED_BY_ENTER: { readonly [P in ProgramName]: readonly string[] } = {
  codex: ['please explain @foo', 'see @', 'see $', 'one\ntwo @foo', 'in C:\\'],
  // It replaces the name of a file.
  gemini: ['please explain @fot', 'see @', 'mail a@fot', 'in C:\\', 'one\\\ntwo\\'],
  opencode: ['please explain @foo', 'see @', '@', 'in C:\\'],
};
/** gemini gives unknown commands to the model. */
const REFUSED: { readonly [P in ProgramName]: readonly string[] } = {
  codex: ['/nosuchcommand x', '/nosuchcommand x\ny'],
  gemini: [],
  opencode: ['/nosuchcommand'],
};

/** A command that each runs by itself. */
const COMMANDS: { readonly [P in ProgramName]: string } = {
  codex: '/status',
  gemini: '/about',
  opencode: '/new',
};

describeWithAgents('a real agent', () => {
  it.each(PROGRAMS)(
    '%s gets prompts as written that it could complete or continue, and nothing of those that it refuses',
    async (program) => {
      const model = await modelServer(() => 'heard');
      const { cwd, env } = prepareAgent(program, { root: newFolder(), url: model.url });
      writeFileSync(join(cwd, 'foo.txt'), 'bar\n');
      const daemon = await startDaemon({ config: CONFIG });
      const spec = { name: 'bot', agent_type: program, cwd, baseEnv: env };
      expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
      expect((await daemon.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
      const prompt = (text: string) =>
        daemon.request('POST', '/v1/agents/bot/prompt', { text, wait: 'idle', queue: true });
      const told: string[] = [];
      for (const text of ['begin', ...CHANGED_BY_ENTER[program], 'go on']) {
        expect(await prompt(text)).toMatchObject({ status: 200, body: { state: 'idle' } });
        told.push(text);
      }
      expect(await prompt(COMMANDS[program])).toMatchObject({ status: 200, body: { state: 'idle' } });
      for (const text of REFUSED[program]) {
        const { body, status } = await prompt(text);
        expect([status, body.code]).toEqual([502, 'agent_stalled']);
        expect(await prompt('go on')).toMatchObject({ status: 200, body: { state: 'idle' } });
        told.push('go on');
      }
      expect(await prompt('go on')).toMatchObject({ status: 200, body: { state: 'idle' } });
      told.push('go on');
      expect(model.turns().map((turn) => lastPrompt(turn).trimEnd())).toEqual(told);
    },
    300_000,
  );

  it.each(PROGRAMS.filter((program) => program === 'opencode'))(
    '%s with a dialog open over its conversation is blocked, and gets nothing until it is closed',
    async () => {
      const model = await modelServer(() => 'heard');
      const { cwd, env } = prepareAgent('opencode', { root: newFolder(), url: model.url });
      const daemon = await startDaemon({ config: CONFIG });
      const spec = { name: 'bot', agent_type: 'opencode', cwd, baseEnv: env };
      expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
      expect((await daemon.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
      const prompt = (text: string) =>
        daemon.request('POST', '/v1/agents/bot/prompt', { text, wait: 'idle', queue: true });
      const press = (...keys: string[]) => daemon.request('POST', '/v1/agents/bot/keys', { keys });
      const waitFor = (state: string) => daemon.request('GET', `/v1/agents/bot/wait?for=${state}`);
      expect(await prompt('begin')).toMatchObject({ status: 200, body: { state: 'idle' } });
      for (const command of ['/help', '/agents']) {
        const { body, status } = await prompt(command);
        expect([status, body.state]).toEqual([200, 'blocked']);
        expect((await press('Escape')).status).toBe(200);
        expect((await waitFor('idle')).status).toBe(200);
      }
      expect((await press('C-p')).status).toBe(200);
      expect((await waitFor('blocked')).status).toBe(200);
      const { body, status } = await daemon.request('POST', '/v1/agents/bot/prompt', { text: 'plan' });
      expect([status, body.code]).toEqual([409, 'agent_blocked']);
      expect((await press('Escape')).status).toBe(200);
      expect((await waitFor('idle')).status).toBe(200);
      expect(await prompt('go on')).toMatchObject({ status: 200, body: { state: 'idle' } });
      expect(model.turns().map((turn) => lastPrompt(turn).trimEnd())).toEqual(['begin', 'go on']);
    },
    300_000,
  );

  it.each([
    [120, 32, '\n'],
    [45, 14, ' '],
  ])(
    'codex of %i x %i gets nothing of a refused text that is longer than its input',
    async (cols, rows, between) => {
      const model = await modelServer(() => 'heard');
      const { cwd, env } = prepareAgent('codex', { root: newFolder(), url: model.url });
      const daemon = await startDaemon({ config: CONFIG });
      const spec = { name: 'bot', agent_type: 'codex', cwd, baseEnv: env, cols, rows };
      expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
      expect((await daemon.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
      const words = Array.from({ length: 110 }, (_, word) => `w${word}`).join(between);
      const told: string[] = [];
      for (const text of [`/nosuch ${words}`, 'go on', `say ${words}`, `/nosuch ${words}`, 'go on']) {
        const asked = { text, wait: 'idle', queue: true };
        const { body, status } = await daemon.request('POST', '/v1/agents/bot/prompt', asked);
        const isRefused = text.startsWith('/');
        expect([status, body.code]).toEqual(isRefused ? [502, 'agent_stalled'] : [200, undefined]);
        if (!isRefused) told.push(text);
      }
      expect(model.turns().map(lastPrompt)).toEqual(told);
    },
    100_000,
  );
});
