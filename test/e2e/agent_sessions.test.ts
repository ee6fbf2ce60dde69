// docs/reference.md "Sessions of agents" with real programs, and with the daemon and its host killed.
import { expect, it } from 'vitest';
import { describeWithAgents, prepareAgent } from '../kit/agent_programs.ts';
import { type Daemon, hostPid, newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { modelServer } from '../kit/model_server.ts';

/** Those whose screens tell that they are idle, which alone are put to sleep. */
const RESUMED = ['codex'] as const;
const [first] = ownPorts(3);
const CONFIG = `[agents]\nports = [${first}, ${first + 2}]\n`;

async function ask(daemon: Daemon, path: string, body?: object): Promise<any> {
  const answer = await daemon.request('POST', `/v1/agents/bot/${path}`, body);
  expect(answer.body).toMatchObject({ name: 'bot' });
  return answer.body;
}

describeWithAgents('the conversation of a real agent', () => {
  it.each(RESUMED)(
    'of type %s goes on after a sleep and the death of daemon and host',
    async (program) => {
      const model = await modelServer();
      const { cwd, env } = prepareAgent(program, { root: newFolder(), url: model.url });
      const before = await startDaemon({ config: CONFIG });
      const baseEnv = env;
      const spec = { name: 'bot', agent_type: program, cwd, baseEnv };
      expect((await before.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
      await before.request('GET', '/v1/agents/bot/wait?for=idle');
      await ask(before, 'prompt', { text: 'the word is banana', wait: 'idle' });
      expect(await ask(before, 'sleep')).toEqual({ name: 'bot', status: 'sleeping' });
      process.kill(hostPid(before.stateDir), 'SIGKILL');
      before.signal('SIGKILL');
      await before.exited;

      const after = await startDaemon({ config: CONFIG, stateDir: before.stateDir });
      const { body } = await after.request('GET', '/v1/agents/bot');
      expect(body).toMatchObject({ state: 'asleep', sessionId: expect.any(String) });
      const shown = await after.request('GET', '/v1/agents/bot/screen');
      expect(shown.body.lines.join('\n')).toContain('banana');
      await ask(after, 'prompt', { text: 'which word was it', wait: 'idle' });
      const said =
        model
          .turns()
          .at(-1)
          ?.messages.map(({ text }) => text) ?? [];
      expect(said.join('\n')).toMatch(/the word is banana[\s\S]*which word was it/);
    },
    120_000,
  );
});
