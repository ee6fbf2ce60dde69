// Each control of the page does what its name says, on the real daemon.
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, choose, openBerth, shownScreen, withServices } from './page_services.ts';

const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, ...(typeof name === 'string' && { exact: true }) }).click();

it.runIf(hasChromium)(
  browserTest('a log is paused, not wrapped, copied and downloaded'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const cmd =
      'printf "\\033[31mred\\033[0m %0500d\\n" 7; i=0; while sleep 0.05; do i=$((i+1)); echo "line $i"; done';
    await add(daemon, { name: 'ticker', cmd });
    const page = await openBerth(daemon, '#/services/ticker');
    const lines = page.locator('.log-lines');
    const isAtEnd = () => lines.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 2);
    const isScrollable = () => lines.evaluate((box) => box.scrollHeight > box.clientHeight);
    await eventually(async () => (await isScrollable()) && (await isAtEnd()));
    await press(page, 'pause');
    await eventually(async () => !(await isAtEnd()));
    await press(page, 'go on');
    await eventually(isAtEnd);
    // A long line is as wide as it is, and scrolls within the log.
    await lines.evaluate((box) => box.scrollTo(0, 0));
    await page.locator('.log-text', { hasText: 'red' }).waitFor();
    const isWide = () => lines.evaluate((box) => box.scrollWidth > box.clientWidth);
    expect(await isWide()).toBe(false);
    await press(page, 'wrap long lines');
    await eventually(isWide);
    const first = /^\S+Z? ticker -- started pid \d+ --\n\S+ ticker red 0{499}7\n\S+ ticker line 1\n/;
    await press(page, 'copy the lines');
    await page.getByText(/^copied \d+ lines$/).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(first);
    const download = page.waitForEvent('download');
    await press(page, 'download the log');
    const file = await download;
    expect(file.suggestedFilename()).toBe('ticker.log');
    expect(await readFile(await file.path(), 'utf8')).toMatch(first);
  },
);

it.runIf(hasChromium)(
  browserTest('the panes are split, moved by keys and made large, and the theme is chosen and kept'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'api' });
    const page = await openBerth(daemon, '#/services/web');
    await press(page, 'keep the log of web open');
    await page.evaluate(`location.assign('#/services/api?panes=log.web')`);
    await page.locator('h1', { hasText: 'api' }).waitFor();
    await choose(page, 'my_bot terminal');
    await page.locator('.pane').nth(1).waitFor();
    expect(await page.evaluate('location.hash')).toContain('log.web%7Eterminal.my_bot');
    const height = async (): Promise<number> => (await page.locator('.dock').boundingBox())?.height ?? 0;
    const before = await height();
    await page.getByRole('separator', { name: 'height of the panes' }).focus();
    await page.keyboard.press('ArrowUp');
    await eventually(async () => (await height()) > before);
    const higher = await height();
    await page.reload();
    await page.locator('.pane').nth(1).waitFor();
    expect(await height()).toBe(higher);
    await page.getByRole('button', { name: 'make the panes large' }).first().click();
    await eventually(async () => (await height()) > 800);
    await page.getByRole('button', { name: 'make the panes small' }).first().click();
    await eventually(async () => (await height()) === higher);
    // By the system, then by choice; a terminal has the colours of the page.
    const back = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await back();
    await press(page, 'theme: system');
    await press(page, 'theme: light');
    await page.getByRole('button', { name: 'theme: dark' }).waitFor();
    expect(await back()).not.toBe(light);
    await page.reload();
    await page.getByText('connected', { exact: true }).waitFor();
    expect(await back()).not.toBe(light);
  },
);

it.runIf(hasChromium)(
  browserTest('the palette finds services whose list arrives after it has opened'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const page = await openBerth(daemon);
    await page.locator('.list-row', { hasText: 'web' }).waitFor();
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/v1/services', async (route) => {
      await released;
      await route.continue();
    });
    await page.reload();
    await page.getByText('connected', { exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('my_bot terminal');
    await page.getByText('Nothing has these words.').waitFor();
    await page.keyboard.press('Enter');
    release();
    await page.getByRole('option', { name: 'my_bot terminal' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'terminal of my_bot' }).waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('a service shows what it needs and what needs it, gets signals, sleeps and wakes'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const cmd = `trap 'echo got it' USR1; while :; do sleep 0.1; done`;
    await add(daemon, { name: 'base', cmd });
    const sleeper = { name: 'sleeper', dependsOn: ['base'], sleep: { afterMinutes: 60 } };
    await add(daemon, { ...sleeper, cmd: 'exec python3 -m http.server $PORT --bind 127.0.0.1' });
    const page = await openBerth(daemon, '#/services/base');
    const needed = page.getByRole('group', { name: 'need it' });
    await needed.getByText('sleeper').waitFor();
    // The keys pass SIGHUP, which would end the service.
    await page.getByLabel('send a signal to base').focus();
    for (const _ of [1, 2, 3, 4]) await page.keyboard.press('ArrowDown');
    await press(page, 'send: SIGUSR1');
    await page.locator('.log-text', { hasText: 'got it' }).waitFor();
    expect((await ask(daemon, 'GET', '/v1/services/base')).status).toBe('running');
    await needed.getByText('sleeper').click();
    await page.locator('h1', { hasText: 'sleeper' }).waitFor();
    await page.getByRole('group', { name: 'it needs' }).getByText('base').waitFor();
    const state = (word: string) => page.locator('.view-head .state', { hasText: word }).waitFor();
    await state('running');
    await press(page, 'sleep sleeper');
    await state('sleeping');
    await press(page, 'wake sleeper');
    await state('running');
    // Events are held while a person reads, and the address keeps where.
    await page.evaluate(`location.assign('#/events')`);
    const count = () => page.locator('.event-row').count();
    await page.locator('.event-row', { hasText: 'sleeper' }).first().waitFor();
    await press(page, 'hold the list');
    const held = await count();
    await ask(daemon, 'POST', '/v1/services/web/stop');
    await ask(daemon, 'POST', '/v1/services/web/start?wait=false');
    await page.locator('.list-row[data-name=web]', { hasText: 'running' }).waitFor();
    await page.reload();
    await page.getByText(/^held/).waitFor();
    await eventually(async () => (await count()) === held, count);
    await press(page, 'follow new events');
    await eventually(async () => (await count()) > held, count);
  },
);

it.runIf(hasChromium)(
  browserTest('a phone types keys that it lacks, a terminal is searched, and who waits comes first'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const keys = `stty raw -echo; printf 'ready\\r\\n'; exec od -An -tx1 -w1 -v`;
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'keyboard', cmd: keys });
    await ask(daemon, 'POST', '/v1/agents/my_bot/state', { state: 'blocked', message: 'May I?' });
    const phone = await openBerth(daemon, '#/agents', { isPhone: true });
    await phone.locator('.agent-card[data-state=blocked]').waitFor();
    const names = (cards: Element[]) => cards.map((card) => card.getAttribute('data-name'));
    expect(await phone.locator('.agent-card').evaluateAll(names)).toEqual(['my_bot', 'keyboard']);
    await phone.locator('.agent-card[data-name=keyboard]').tap();
    await phone.getByText(/attached · \d+×\d+/).waitFor();
    for (const name of ['Esc', 'Tab', 'Up', 'Enter'])
      await phone.getByRole('button', { name, exact: true }).tap();
    await phone.getByRole('button', { name: 'Ctrl', exact: true }).tap();
    await phone.keyboard.type('c');
    const wanted = ['1b', '09', '1b', '5b', '41', '0d', '03'];
    const typed = async () => (await shownScreen(phone)).match(/\b[0-9a-f]{2}\b/g) ?? [];
    await eventually(async () => String(await typed()) === String(wanted), typed);
    const find = phone.getByLabel('find in the terminal of keyboard');
    await find.fill('ready');
    await find.press('Enter');
    await phone.locator('.terminal-box textarea').focus();
    await phone.keyboard.press('Control+Shift+C');
    await eventually(async () => (await phone.evaluate('navigator.clipboard.readText()')) === 'ready');
  },
);
