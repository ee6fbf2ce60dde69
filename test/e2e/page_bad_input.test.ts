// What goes wrong under an open page: services that go away, and logs that no person wrote.
import { expect, it } from 'vitest';
import { LOGS } from '../../src/settings/limits.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

/** Bytes that are no text, then a line of a megabyte. */
const RUBBISH = `head -c 60000 /dev/urandom; echo; head -c 1048576 /dev/zero | tr '\\0' x; echo; echo the end; sleep 600`;

it.runIf(hasChromium)(
  browserTest('a service that is removed, and a log of rubbish and endless lines, leave the page in order'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'rubbish', cmd: RUBBISH });
    const page = await openBerth(daemon, '#/services/rubbish');
    await page.locator('.log-text', { hasText: /^the end$/ }).waitFor();
    const isClean = `!/[\\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u009f\\u202a-\\u202e]/.test(document.body.textContent)`;
    expect(await page.evaluate(isClean)).toBe(true);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.evaluate(`location.assign('#/services/web')`);
    await page.locator('.view-head .state', { hasText: 'running' }).waitFor();
    await ask(daemon, 'POST', '/v1/services/web/stop');
    await ask(daemon, 'DELETE', '/v1/services/web');
    await page.getByText('There is no service of this name. It may have been removed.').waitFor();
    await page.getByRole('link', { name: 'All services' }).click();
    await page.locator('.table-row[data-name=db]').waitFor();
    expect(await page.locator('.table-row[data-name=web]').count()).toBe(0);
  },
);

it.runIf(hasChromium)(
  browserTest('lists that could not be read are told, and are read again by themselves'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const page = await openBerth(daemon);
    await page.locator('.table-row[data-name=db]').waitFor();
    // What has just started causes no event any more.
    for (const [name, state] of [
      ['web', 'running'],
      ['my_bot', 'idle'],
    ] as const)
      await page.locator(`.table-row[data-name=${name}] .state`, { hasText: state }).waitFor();
    await page.route('**/v1/agents', (route) => route.abort());
    await ask(daemon, 'POST', '/v1/services', { name: 'later', cmd: 'sleep 600', port: null });
    await page.getByText('lists are stale', { exact: true }).waitFor();
    expect(await page.locator('.table-row[data-name=later]').count()).toBe(0);
    // No event comes from here on.
    await page.unroute('**/v1/agents');
    await page.locator('.table-row[data-name=later]').waitFor();
    await page.getByText('connected', { exact: true }).waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('why logs cannot be read is told in whole lines on a phone'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const name = (_: unknown, index: number): string => `stopped-${index}`;
    const registered = Array.from({ length: LOGS.maxServices }, name).map((stopped) =>
      ask(daemon, 'POST', '/v1/services', { name: stopped, cmd: 'true', port: null }),
    );
    await Promise.all(registered);
    const page = await openBerth(daemon, '#/logs');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator('.log-state', { hasText: 'names must be given' }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  },
);
