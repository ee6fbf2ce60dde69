// Several tabs with the page share the browser's connections to the daemon.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { must } from '../kit/must.ts';
import { BROWSER_TEST, browserTest, hasChromium, setHidden } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

const lineOf = (page: Page, text: string) => page.locator('.log-text', { hasText: text }).first();

/** All lines that the log of the page has. */
async function linesOf(page: Page): Promise<string> {
  await page.bringToFront();
  await page.getByRole('button', { name: 'copy the lines' }).click();
  await page
    .getByText(/^copied \d+ lines$/)
    .first()
    .waitFor();
  return page.evaluate('navigator.clipboard.readText()');
}

it.runIf(hasChromium)(
  browserTest('hidden tabs leave their connections to the visible one, and lose nothing'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const cmd = 'i=0; while sleep 0.05; do i=$((i+1)); echo "line $i."; done';
    await add(daemon, { name: 'ticker', cmd });
    const first = await openBerth(daemon, '#/services/ticker');
    await lineOf(first, 'line ').waitFor();
    // Alone, a hidden tab keeps its streams.
    await setHidden(first, true);
    for (let index = 0; index < 3; index += 1) {
      const { code } = await ask(daemon, 'POST', '/v1/page-codes');
      const next = await first.context().newPage();
      await next.goto(`http://127.0.0.1:${daemon.port}/#code=${code}`);
      await next.getByText('connected', { exact: true }).waitFor();
      await next.evaluate("location.assign('#/services/ticker')");
      await lineOf(next, 'line ').waitFor();
      await setHidden(next, index < 2);
    }
    const last = must(first.context().pages().at(-1));
    await last.getByRole('button', { name: 'stop ticker' }).first().click();
    await eventually(async () => (await ask(daemon, 'GET', '/v1/services/ticker')).status === 'stopped');

    // A hidden one shows in its title what happened meanwhile.
    await add(daemon, { name: 'broken', cmd: 'exit 3', restart: 'no' });
    await eventually(async () => (await first.title()).startsWith('(1)'));

    await ask(daemon, 'POST', '/v1/services/ticker/start');
    await setHidden(first, false);
    const runs = await eventually(async () => {
      const parts = (await linesOf(first)).split('-- started');
      return parts.length === 3 && parts[2]?.includes('line 1.') && parts;
    });
    const before = must(runs[1]);
    const numbers = [...before.matchAll(/ line (\d+)\.$/gm)].map(([, number]) => Number(number));
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers).toEqual(Array.from(numbers, (_, at) => at + 1));
  },
);

it.runIf(hasChromium)(
  browserTest('a tab that is left alone has its streams again, also while it is hidden'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const first = await openBerth(daemon);
    const streams = (): number => opened.filter((url) => url.includes('/v1/events?')).length;
    const opened: string[] = [];
    const { code } = await ask(daemon, 'POST', '/v1/page-codes');
    const second = await first.context().newPage();
    await second.goto(`http://127.0.0.1:${daemon.port}/#code=${code}`);
    await second.getByText('connected', { exact: true }).waitFor();
    const ends = first.waitForEvent('requestfailed', (request) => request.url().includes('/v1/events?'));
    await setHidden(first, true);
    await ends;
    first.on('request', (request) => opened.push(request.url()));
    await second.close();
    await eventually(() => streams() === 1);
  },
);
