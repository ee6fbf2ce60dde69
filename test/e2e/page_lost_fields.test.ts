// A person goes on typing while the page changes under the keys: nothing of it is taken for a shortcut.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

/** The page at an agent, beside a service that has crashed. `sent`: every change that the page has requested. */
async function atAgent() {
  const daemon = await withServices();
  await add(daemon, { name: 'job', cmd: 'exit 3', restart: 'no' });
  const page = await openBerth(daemon, '#/agents/my_bot');
  await page.locator('.list-row[title="job: crashed"]').waitFor();
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.method() !== 'GET') sent.push(`${request.method()} ${new URL(request.url()).pathname}`);
  });
  return { daemon, page, sent };
}

const focused = (page: Page): Promise<unknown> =>
  page.evaluate('[document.activeElement.localName, document.activeElement.value, location.hash]');
const box = (page: Page) => page.getByLabel('prompt for my_bot');
const remove = (daemon: Daemon) => ask(daemon, 'DELETE', '/v1/agents/my_bot');
const isMissing = (page: Page) => page.getByText('There is no agent of this name').waitFor();

it.runIf(hasChromium)(
  browserTest('the field for a prompt stays with its text when the agent ends or is removed'),
  BROWSER_TEST,
  async () => {
    const { daemon, page, sent } = await atAgent();
    await box(page).click();
    await page.keyboard.type('please look, ');
    await ask(daemon, 'POST', '/v1/services/my_bot/stop');
    await page.getByText('Nothing runs here').waitFor();
    await page.keyboard.type('then restart ');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toEqual(['textarea', 'please look, then restart ', '#/agents/my_bot']);
    await remove(daemon);
    await isMissing(page);
    await page.keyboard.type('the server');
    const text = 'please look, then restart the server';
    expect(await focused(page)).toEqual(['textarea', text, '#/agents/my_bot']);
    // It stays for its text, and goes when a person leaves it without one.
    await page.keyboard.press('Escape');
    expect(await box(page).inputValue()).toBe(text);
    await box(page).fill('');
    await page.keyboard.press('Escape');
    await eventually(async () => (await box(page).count()) === 0);
    expect(sent).toEqual([]);
  },
);

it.runIf(hasChromium)(
  browserTest('keys typed into a field that has vanished are no shortcuts until the person has left it'),
  BROWSER_TEST,
  async () => {
    const { daemon, page, sent } = await atAgent();
    await page.getByLabel('find in the terminal of my_bot').click();
    await remove(daemon);
    await isMissing(page);
    await page.keyboard.type('then start');
    expect(await focused(page)).toEqual(['body', undefined, '#/agents/my_bot']);
    expect(sent).toEqual([]);
    await page.keyboard.press('Escape');
    await page.keyboard.press('n');
    await page.locator('h1', { hasText: 'job' }).waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('keys typed into the terminal of an agent that was removed are no shortcuts until a click'),
  BROWSER_TEST,
  async () => {
    const { daemon, page, sent } = await atAgent();
    await page.getByText(/attached · \d+×\d+/).waitFor();
    await page.locator('.xterm').click();
    await page.keyboard.press('Escape');
    await remove(daemon);
    await isMissing(page);
    await page.keyboard.type('then start');
    expect(await focused(page)).toEqual(['body', undefined, '#/agents/my_bot']);
    expect(sent).toEqual([]);
    await page.getByText('There is no agent of this name').click();
    await page.keyboard.press('n');
    await page.locator('h1', { hasText: 'job' }).waitFor();
  },
);
