// Prompts of the page for agents that are busy: they wait in the tab, and hold no connection.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { type Daemon, eventually, newFolder } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, daemonOn, openBerth } from './page_services.ts';

const COMPOSER = fileURLToPath(new URL('composer.mjs', import.meta.url));
const composing = (file: string): string => `exec ${process.execPath} ${COMPOSER} ${file}`;

/** Every prompt that the composer which writes to `file` has been given. */
function submitted(file: string): string[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  return lines.map((line) => JSON.parse(line));
}

const report = (daemon: Daemon, name: string, state: string) =>
  ask(daemon, 'POST', `/v1/agents/${name}/state`, { state });

/** A daemon with agents that work. `typed`: every prompt that an agent has been given. */
async function withBusyAgents(...names: string[]) {
  const daemon = await daemonOn(0);
  const folder = newFolder();
  for (const name of names) {
    const cmd = composing(join(folder, name));
    await ask(daemon, 'POST', '/v1/agents/spinup', { name, cmd });
  }
  await ask(daemon, 'GET', '/v1/agents/wait?for=idle&mode=all');
  for (const name of names) await report(daemon, name, 'working');
  return { daemon, typed: (name: string) => submitted(join(folder, name)) };
}

const field = (page: Page, name: string) => page.getByRole('textbox', { name: `prompt for ${name}` });
const waits = (page: Page) => page.getByText('the prompt waits for its turn. It is lost').waitFor();
const isSent = (page: Page, name: string) =>
  eventually(async () => (await field(page, name).inputValue()) === '');

/** Sends a prompt to an agent that works, and resolves when the page says that it waits. */
async function send(page: Page, name: string, text: string): Promise<void> {
  await page.evaluate((to) => location.assign(to), `#/agents/${name}`);
  await field(page, name).fill(text);
  await field(page, name).press('Enter');
  await waits(page);
}

it.runIf(hasChromium)(
  browserTest('prompts that wait for more agents than a browser has connections hold nothing up'),
  BROWSER_TEST,
  async () => {
    const names = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'];
    const { daemon, typed } = await withBusyAgents(...names);
    await add(daemon, { name: 'web' });
    const page = await openBerth(daemon);
    for (const name of names) await send(page, name, `for ${name}`);
    await page.evaluate(`location.assign('#/services/web')`);
    await page.locator('h1', { hasText: 'web' }).waitFor();
    await page.getByRole('button', { name: 'stop web' }).first().click();
    await eventually(async () => (await ask(daemon, 'GET', '/v1/services/web')).status === 'stopped');
    expect(names.flatMap(typed)).toEqual([]);
    for (const name of names) await report(daemon, name, 'idle');
    await eventually(() => names.every((name) => typed(name).length > 0));
    for (const name of names) {
      await page.evaluate((to) => location.assign(to), `#/agents/${name}`);
      await isSent(page, name);
    }
    expect(names.flatMap(typed)).toEqual(names.map((name) => `for ${name}`));
  },
);

it.runIf(hasChromium)(
  browserTest('a prompt goes on waiting when that of another client comes first'),
  BROWSER_TEST,
  async () => {
    const { daemon, typed } = await withBusyAgents('bot');
    const page = await openBerth(daemon);
    const answers: number[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('/prompt')) answers.push(response.status());
    });
    await send(page, 'bot', 'of the page');
    const other = ask(daemon, 'POST', '/v1/agents/bot/prompt', { text: 'of another', queue: true });
    // It has arrived once a third is refused because of it.
    const refusal = () => ask(daemon, 'POST', '/v1/agents/bot/prompt', { text: 'no' }).catch(String);
    await eventually(async () => (await refusal()).includes('is waiting'));
    await report(daemon, 'bot', 'idle');
    await other;
    await isSent(page, 'bot');
    expect(typed('bot')).toEqual(['of another', 'of the page']);
    expect([answers.at(-1), new Set(answers.slice(0, -1))]).toEqual([200, new Set([409])]);
  },
);

it.runIf(hasChromium)(
  browserTest('a prompt that waits can be taken back, and is not for a later process of the agent'),
  BROWSER_TEST,
  async () => {
    const { daemon, typed } = await withBusyAgents('bot');
    const page = await openBerth(daemon);
    await send(page, 'bot', 'one');
    const back = page.getByRole('button', { name: 'take back the prompt for bot' });
    await back.click();
    await back.waitFor({ state: 'hidden' });
    expect(await field(page, 'bot').inputValue()).toBe('one');
    await report(daemon, 'bot', 'idle');
    await page.locator('.view-head .state', { hasText: 'idle' }).waitFor();
    await field(page, 'bot').fill('two');
    await field(page, 'bot').press('Enter');
    await isSent(page, 'bot');
    expect(typed('bot')).toEqual(['two']);
    await report(daemon, 'bot', 'working');
    await page.locator('.view-head .state', { hasText: 'working' }).waitFor();
    await send(page, 'bot', 'three');
    await ask(daemon, 'POST', '/v1/services/bot/restart');
    // The page says so, before the daemon has to.
    await page.getByText('bot has ended since, and nothing was typed').waitFor();
    expect(await field(page, 'bot').inputValue()).toBe('three');
    await ask(daemon, 'GET', '/v1/agents/wait?for=idle&mode=all');
    expect(typed('bot')).toEqual(['two']);
  },
);

it.runIf(hasChromium)(
  browserTest(
    'a prompt that waits is not for a new agent of the same name of which the page knows nothing yet',
  ),
  BROWSER_TEST,
  async () => {
    const { daemon, typed } = await withBusyAgents('bot');
    const page = await openBerth(daemon);
    await send(page, 'bot', 'for the first');
    const { agents } = await ask(daemon, 'GET', '/v1/agents');
    let state = 'working';
    // The page goes on reading the agent that was removed.
    await page.route('**/v1/agents', (route) =>
      route.fulfill({ json: { agents: [{ ...agents[0], state }] } }),
    );
    await ask(daemon, 'DELETE', '/v1/agents/bot');
    const folder = newFolder();
    const file = join(folder, 'next');
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'bot', cmd: composing(file) });
    await ask(daemon, 'GET', '/v1/agents/wait?for=idle&mode=all');
    state = 'idle';
    const answer = page.waitForResponse('**/v1/agents/bot/prompt');
    // The page reads its lists again with this.
    await add(daemon, { name: 'web' });
    expect((await answer).status()).toBe(409);
    await page.getByText('prompt bot: not running').waitFor();
    expect(await field(page, 'bot').inputValue()).toBe('for the first');
    expect([...typed('bot'), ...submitted(file)]).toEqual([]);
  },
);

it.runIf(hasChromium)(
  browserTest('a prompt wakes an agent, and waits in the tab when the start takes long'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    const folder = newFolder();
    const file = join(folder, 'out');
    const gate = join(folder, 'gate');
    const program = join(folder, 'claude');
    // It prints until the gate is open. Its arguments resume a conversation that it does not have.
    const script = `until [ -e gate ]; do echo loading; sleep 0.2; done; ${composing(file)}`;
    writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    writeFileSync(gate, '');
    const agent = { name: 'bot', cmd: program, agent_type: 'claude', cwd: folder };
    await ask(daemon, 'POST', '/v1/agents/spinup', agent);
    const idle = { state: 'idle', session_id: 'a-conversation' };
    const post = (path: string, body?: object): Promise<boolean> =>
      ask(daemon, 'POST', `/v1/agents/bot/${path}`, body).then(
        () => true,
        () => false,
      );
    await eventually(async () => (await post('state', idle)) && post('sleep'));
    rmSync(gate);
    const page = await openBerth(daemon, '#/agents/bot');
    await page.getByText('a prompt wakes it').waitFor();
    // Chromium sends a request with this answer again, and the second answer is another.
    const late = { status: 408, json: { code: 'wait_timeout', message: 'late', hint: '' } };
    await page.route('**/prompt', (route) => route.fulfill(late), { times: 1 });
    await send(page, 'bot', 'good morning');
    writeFileSync(gate, '');
    const reports = setInterval(() => void post('state', idle), 500);
    await isSent(page, 'bot').finally(() => clearInterval(reports));
    expect(submitted(file)).toEqual(['good morning']);
  },
);
