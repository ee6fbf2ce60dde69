// docs/reference.md "Prompt", "Waiting for agents" on the real daemon with real programs.
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Daemon, eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { random } from '../kit/random.ts';
import { trickyText } from '../kit/tricky_text.ts';

const [first] = ownPorts(10);
const CONFIG = `[agents]\nports = [${first}, ${first + 9}]\n`;
const COMPOSER = fileURLToPath(new URL('composer.mjs', import.meta.url));

/** Spins agents up, and resolves when each takes a prompt. */
async function idle(daemon: Daemon, commands: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, cmd] of Object.entries(commands))
    expect((await daemon.request('POST', '/v1/agents/spinup', { name, cmd })).status).toBe(201);
  const names = Object.keys(commands).join(',');
  const { status } = await daemon.request('GET', `/v1/agents/wait?names=${names}&for=idle&mode=all`);
  expect(status).toBe(200);
}

const prompt = (daemon: Daemon, name: string, body: object) =>
  daemon.request('POST', `/v1/agents/${name}/prompt`, body);

/** Everything that was submitted to the composer that writes to `file`. */
const submitted = (file: string): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
    : [];

const composing = (file: string): string => `exec ${process.execPath} ${COMPOSER} ${file}`;

describe('a prompt', { timeout: 60_000 }, () => {
  it('of any length arrives exactly at a full-screen program, once', async () => {
    const daemon = await startDaemon({ config: CONFIG });
    const folder = newFolder();
    const lengths = [1, 200, 20_000];
    const file = (length: number) => join(folder, String(length));
    const commands = lengths.map((length) => [`c${length}`, composing(file(length))]);
    await idle(daemon, Object.fromEntries(commands));
    const answers = await Promise.all(
      lengths.map((length) => prompt(daemon, `c${length}`, { text: trickyText(length), wait: 'idle' })),
    );
    expect(answers.map(({ status, body }) => [status, body.state])).toEqual(lengths.map(() => [200, 'idle']));
    for (const length of lengths) expect(submitted(file(length))).toEqual([trickyText(length)]);
    expect(answers[0]?.body.lines).toEqual(['moved']);
  });

  it('returns the new lines of a shell and of an interpreter', async () => {
    const daemon = await startDaemon({ config: CONFIG });
    const file = join(newFolder(), 'out');
    await idle(daemon, { sh: 'exec bash --norc -i', py: 'exec python3 -q', cat: `exec cat > ${file}` });
    const long = Array.from({ length: 5 }, (_, index) => String(index).repeat(4_000)).join('\n');
    const [sh, py] = await Promise.all([
      prompt(daemon, 'sh', { text: 'for i in 1 2\ndo echo "nr $i"\ndone', wait: 'idle' }),
      prompt(daemon, 'py', { text: 'print("😀" * 3)', wait: 'idle' }),
      prompt(daemon, 'cat', { text: long, wait: 'idle' }),
    ]);
    expect(sh.body.lines.filter((line: string) => /^nr/.test(line))).toEqual(['nr 1', 'nr 2']);
    expect(py.body.lines).toContain('😀😀😀');
    expect(readFileSync(file, 'utf8')).toBe(`${long}\n`);
    const refused = await Promise.all([
      prompt(daemon, 'py', { text: 'a\tb', queue: true }),
      prompt(daemon, 'cat', { text: 'x'.repeat(5_000), queue: true }),
    ]);
    expect(refused.map(({ body }) => body.code)).toEqual(['invalid_spec', 'invalid_spec']);
  });

  it('of fifty at once is the only one that is typed', async () => {
    const daemon = await startDaemon({ config: CONFIG });
    const file = join(newFolder(), 'out');
    await idle(daemon, { bot: composing(file) });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => prompt(daemon, 'bot', { text: `prompt ${index}` })),
    );
    const taken = answers.flatMap(({ status }, index) => (status === 200 ? [`prompt ${index}`] : []));
    expect(taken).toHaveLength(1);
    expect(submitted(file)).toEqual(taken);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
  });

  it('wakes a sleeping agent once, also beside other prompts, a wake and a viewer', async () => {
    const daemon = await startDaemon({ config: CONFIG });
    const folder = newFolder();
    const file = join(folder, 'out');
    // Its arguments resume a conversation that it does not have.
    writeFileSync(join(folder, 'claude'), `#!/bin/sh\n${composing(file)}\n`, { mode: 0o755 });
    const agent = { name: 'bot', cmd: join(folder, 'claude'), agent_type: 'claude' };
    expect((await daemon.request('POST', '/v1/agents/spinup', agent)).status).toBe(201);
    const report = { state: 'idle', session_id: 'a-conversation' };
    const sleep = async () => {
      await daemon.request('POST', '/v1/agents/bot/state', report);
      return (await daemon.request('POST', '/v1/agents/bot/sleep')).status === 200;
    };
    const texts = ['one', 'two', 'three'];
    for (const round of ['first', 'second']) {
      await eventually(sleep);
      const answers = texts.map((text) => prompt(daemon, 'bot', { text: `${round} ${text}`, queue: true }));
      const wake = daemon.request('POST', '/v1/agents/bot/wake');
      const viewer = new WebSocket(`ws://127.0.0.1:${daemon.port}/v1/agents/bot/attach`, 'berth.v1');
      await once(viewer, 'message');
      const reports = setInterval(() => void daemon.request('POST', '/v1/agents/bot/state', report), 500);
      const all = await Promise.all([...answers, wake]).finally(() => clearInterval(reports));
      expect(all.map(({ status, body }) => [status, body.code])).toEqual(all.map(() => [200, undefined]));
      viewer.close();
    }
    expect(submitted(file).sort()).toEqual(
      ['first', 'second'].flatMap((round) => texts.map((text) => `${round} ${text}`)).sort(),
    );
  });

  it('for one process is typed into no later one, and starts none', async () => {
    const daemon = await startDaemon({ config: CONFIG });
    const folder = newFolder();
    const file = join(folder, 'out');
    // Its arguments resume a conversation that it does not have.
    writeFileSync(join(folder, 'claude'), `#!/bin/sh\n${composing(file)}\n`, { mode: 0o755 });
    const spinup = async () => {
      const agent = { name: 'bot', cmd: join(folder, 'claude'), agent_type: 'claude' };
      return (await daemon.request('POST', '/v1/agents/spinup', agent)).body.pid;
    };
    const pid = await spinup();
    expect((await prompt(daemon, 'bot', { text: 'one', pid, queue: true })).status).toBe(200);
    const report = { state: 'idle', session_id: 'a-conversation' };
    const sleep = async () => {
      await daemon.request('POST', '/v1/agents/bot/state', report);
      return (await daemon.request('POST', '/v1/agents/bot/sleep')).status === 200;
    };
    await eventually(sleep);
    const late = () => prompt(daemon, 'bot', { text: 'late', pid, queue: true });
    const refusal = { status: 409, body: { code: 'not_running' } };
    expect(await late()).toMatchObject(refusal);
    expect((await daemon.request('GET', '/v1/agents/bot')).body.state).toBe('asleep');
    await daemon.request('DELETE', '/v1/agents/bot');
    const next = await spinup();
    const hint = 'Send it again if it is for the present process.';
    expect(await late()).toMatchObject({ status: 409, body: { code: 'not_running', hint } });
    expect((await prompt(daemon, 'bot', { text: 'two', pid: next, queue: true })).status).toBe(200);
    expect(submitted(file)).toEqual(['one', 'two']);
    for (const wrong of [0, -1, 1.5, '1', null, 2 ** 32])
      expect((await prompt(daemon, 'bot', { text: 'x', pid: wrong })).body.code).toBe('invalid_spec');
  });

  it('is typed at most once when the daemon is killed meanwhile', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const below = random(seed);
    const stateDir = newFolder();
    const daemon = await startDaemon({ stateDir, config: CONFIG });
    const folder = newFolder();
    const names = ['a', 'b', 'c', 'd'];
    const file = (name: string) => join(folder, name);
    await idle(daemon, Object.fromEntries(names.map((name) => [name, composing(file(name))])));
    const text = trickyText(2_000);
    const open = names.flatMap((name) => [
      prompt(daemon, name, { text }).catch(() => null),
      prompt(daemon, name, { text: `queued for ${name}`, queue: true }).catch(() => null),
    ]);
    await pause(below(250));
    daemon.signal('SIGKILL');
    await Promise.all(open);
    const next = await startDaemon({ stateDir, config: CONFIG });
    const { status, body } = await next.request('GET', '/v1/agents/wait?for=idle&mode=all');
    expect({ seed, status, states: body.agents?.map(({ state }: { state: string }) => state) }).toEqual({
      ...{ seed, status: 200, states: names.map(() => 'idle') },
    });
    for (const name of names) {
      const found = submitted(file(name));
      expect({ seed, found: found.length <= 1 && found.every((one) => one === text) }).toEqual({
        ...{ seed, found: true },
      });
    }
  });
});
