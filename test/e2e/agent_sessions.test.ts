// docs/reference.md "Prompt" and "Sessions of agents" with real programs, and with the daemon and its host
// killed.
import { expect, it } from 'vitest';
import { describeWithAgents, PROGRAM_NAMES, prepareAgent } from '../kit/agent_programs.ts';
import { type Daemon, eventually, hostPid, newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { lastPrompt, modelServer } from '../kit/model_server.ts';
import { trickyText } from '../kit/tricky_text.ts';

const [first] = ownPorts(3);
/** gemini and opencode take 20 s of processor time each: they run where BERTH_TEST_LONG_AGENTS is 1. */
const PROGRAMS = process.env['BERTH_TEST_LONG_AGENTS'] === '1' ? PROGRAM_NAMES : (['codex'] as const);
const CONFIG = `[agents]\nports = [${first}, ${first + 2}]\n`;

async function ask(daemon: Daemon, path: string, body?: object): Promise<any> {
  const answer = await daemon.request('POST', `/v1/agents/bot/${path}`, body);
  expect(answer.body).toMatchObject({ name: 'bot' });
  return answer.body;
}

describeWithAgents('a real agent', () => {
  it.each(PROGRAMS)(
    '%s gets prompts exactly, and continues after a sleep and after a kill of daemon and host',
    async (program) => {
      const model = await modelServer(() => 'heard');
      const { cwd, env } = prepareAgent(program, { root: newFolder(), url: model.url });
      const before = await startDaemon({ config: CONFIG });
      const spec = { name: 'bot', agent_type: program, cwd, baseEnv: env };
      expect((await before.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
      expect((await before.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
      /** A busy program is idle for a moment after a prompt: it is over when the model has had it. */
      const prompt = async (daemon: Daemon, text: string): Promise<void> => {
        await ask(daemon, 'prompt', { text, wait: 'idle', queue: true });
        // opencode puts a space behind what was pasted.
        await eventually(() => model.turns().some((turn) => lastPrompt(turn).trimEnd() === text));
        expect((await daemon.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
      };
      for (const length of [1, 200, 20_000]) await prompt(before, trickyText(length));
      await prompt(before, 'the word is banana');
      expect(await ask(before, 'sleep')).toEqual({ name: 'bot', status: 'sleeping' });
      process.kill(hostPid(before.stateDir), 'SIGKILL');
      before.signal('SIGKILL');
      await before.exited;

      const after = await startDaemon({ config: CONFIG, stateDir: before.stateDir });
      const { body } = await after.request('GET', '/v1/agents/bot');
      expect(body).toMatchObject({ state: 'asleep', sessionId: expect.any(String) });
      const shown = await after.request('GET', '/v1/agents/bot/screen');
      expect(shown.body.lines.join('\n')).toContain('banana');
      await prompt(after, 'which word was it');
      const said =
        model
          .turns()
          .at(-1)
          ?.messages.map(({ text }) => text) ?? [];
      expect(said.join('\n')).toMatch(/the word is banana[\s\S]*which word was it/);
    },
    300_000,
  );
});
