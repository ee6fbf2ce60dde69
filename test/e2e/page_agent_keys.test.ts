// The keys that a person types beside an agent: they interrupt none without a question, and reach its terminal.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { ask, choose, openBerth, withServices } from './page_services.ts';

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const attached = (page: Page) => page.getByText(/attached · \d+×\d+/).waitFor();
const listed = (page: Page, name: string) => page.locator(`.list-row[data-name=${name}]`);
const focus = (page: Page): Promise<string> =>
  page.evaluate(`document.activeElement.closest('.xterm') ? 'terminal' : document.activeElement.className`);
const pidOf = async (daemon: Daemon): Promise<number | undefined> =>
  (await ask(daemon, 'GET', '/v1/services/my_bot')).pid;

it.runIf(hasChromium)(
  browserTest('an agent is stopped and restarted only after a question, by key, button and palette'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const pid = await pidOf(daemon);
    const page = await openBerth(daemon, '#/agents/my_bot');
    const question = (what: string) =>
      page.getByRole('dialog').getByText(`${what} my_bot? What it is doing ends.`);
    const isAnswered = () => eventually(async () => (await page.getByRole('dialog').count()) === 0);
    await attached(page);
    // A person who types goes on typing: Space and Enter are no consent.
    for (const [key, what, no] of [
      ['x', 'Stop', 'Space'],
      ['r', 'Restart', 'Enter'],
      ['x', 'Stop', 'Escape'],
    ] as const) {
      await page.keyboard.press(key);
      await question(what).waitFor();
      await page.keyboard.press(no);
      await isAnswered();
    }
    await press(page, 'stop my_bot');
    await question('Stop').waitFor();
    await press(page, 'cancel');
    await choose(page, 'restart my_bot');
    await question('Restart').waitFor();
    await press(page, 'cancel');
    expect(await pidOf(daemon)).toBe(pid);
    await page.evaluate(`location.assign('#/services')`);
    await press(page, 'restart my_bot');
    await press(page, 'restart the agent my_bot');
    await eventually(async () => ![undefined, pid].includes(await pidOf(daemon)));
    // Services ask nothing.
    await press(page, 'stop web');
    await page.locator('.list-row[title="web: stopped"]').waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('a click on an agent in the list takes the keyboard to its terminal, keys stay in the list'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'echo', cmd: 'cat' });
    const page = await openBerth(daemon, '#/agents');
    const screen = async (): Promise<string> =>
      (await ask(daemon, 'GET', '/v1/agents/echo/screen')).lines.join('\n');
    const typed = async (text: string): Promise<void> => {
      await eventually(async () => (await focus(page)) === 'terminal');
      await attached(page);
      await page.keyboard.type(text);
      await eventually(async () => (await screen()).includes(text), screen);
    };
    await listed(page, 'echo').click();
    await typed('explain the error');
    // Again, while it is shown.
    await page.getByRole('heading', { name: 'echo' }).click();
    await listed(page, 'echo').click();
    await typed(' exactly');
    await listed(page, 'my_bot').focus();
    await page.keyboard.press('Enter');
    await page.locator('h1', { hasText: 'my_bot' }).waitFor();
    await attached(page);
    expect(await focus(page)).toBe('list-row');
    await page.keyboard.press('k');
    await page.locator('h1', { hasText: 'echo' }).waitFor();
    await attached(page);
    expect(await focus(page)).toBe('list-row');
  },
);
