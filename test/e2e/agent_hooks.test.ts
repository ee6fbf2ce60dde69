// docs/reference.md "State of an agent" with the hooks of a real program.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { deferred } from '../../src/runtime/deferred.ts';
import { AGENT_STATE } from '../../src/settings/agent_limits.ts';
import { afterThisTest } from '../kit/actors.ts';
import { describeWithAgents, prepareAgent } from '../kit/agent_programs.ts';
import { BIN } from '../kit/built_program.ts';
import { eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { lastPrompt, modelServer } from '../kit/model_server.ts';

const [first] = ownPorts(3);
const CONFIG = `[agents]\nports = [${first}, ${first + 2}]\n`;
/** Between two lines of an answer: the screen of codex then shows its prompt, and only its title moves. */
const LINE_MS = 300;

/** An answer that is streamed line by line until `over` is settled. */
async function* lines(over: Promise<void>): AsyncIterable<string> {
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  while (!isOver) {
    yield 'it goes on\n\n';
    await new Promise((resolve) => setTimeout(resolve, LINE_MS));
  }
  yield 'and it ended';
}

describeWithAgents('a real agent', () => {
  it('whose hook lets it go on is working until its answer has ended', async () => {
    const over = deferred<void>();
    afterThisTest(() => over.resolve());
    const model = await modelServer((request) =>
      lastPrompt(request).includes('go on') ? lines(over.promise) : 'heard',
    );
    const daemon = await startDaemon({ config: CONFIG });
    const root = newFolder();
    const { cwd, env } = prepareAgent('codex', { root, url: model.url });
    // Both run at the end of a turn: that of Berth, and one of the user that has codex go on once.
    const report = `${process.execPath} ${BIN} agent hook idle`;
    const goOn = `mkdir ${join(root, 'once')} && echo '{"decision":"block","reason":"go on"}'; exit 0`;
    const Stop = [report, goOn].map((command) => ({ hooks: [{ type: 'command', command }] }));
    mkdirSync(join(cwd, '.codex'));
    writeFileSync(join(cwd, '.codex', 'hooks.json'), JSON.stringify({ hooks: { Stop } }));
    const cmd = 'codex --no-daemon --dangerously-bypass-hook-trust';
    const spec = { name: 'bot', agent_type: 'codex', cmd, cwd, baseEnv: env };
    expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
    expect((await daemon.request('GET', '/v1/agents/bot/wait?for=idle')).status).toBe(200);
    const answered = daemon.request('POST', '/v1/agents/bot/prompt', { text: 'begin', wait: 'idle' });

    // A hook's report is held back for longer than the end of a turn takes to be shown.
    let explained: any;
    await eventually(
      async () => {
        explained = (await daemon.request('GET', '/v1/agents/bot/explain')).body;
        const [hook] = explained.authorities;
        return hook.at !== null && Date.parse(explained.drawnAt) > Date.parse(hook.at) + AGENT_STATE.outputMs;
      },
      () => explained,
    );
    expect(explained).toMatchObject({ state: 'working', stateReason: { rule: 'title-spinner' } });
    const slept = await daemon.request('POST', '/v1/agents/bot/sleep');
    expect(slept.body).toMatchObject({ code: 'agent_working' });
    over.resolve();
    const { body, status } = await answered;
    expect({ status, body }).toMatchObject({ status: 200, body: { state: 'idle' } });
    expect(body.lines.join('\n')).toContain('and it ended');
  });
});
