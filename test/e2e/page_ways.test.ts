// Short ways in the page: to an address, to the logs of several services, to what needs a person.
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, choose, openBerth, withServices } from './page_services.ts';

it.runIf(hasChromium)(
  browserTest('an address is copied and opened, by button, by key and from the palette'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'site', cmd: 'exec python3 -m http.server $PORT --bind 127.0.0.1' });
    const { gatewayUrl } = await ask(daemon, 'GET', '/v1/services/site');
    const page = await openBerth(daemon, '#/services/site');
    const clipboard = (): Promise<string> => page.evaluate('navigator.clipboard.readText()');
    const clear = () => page.evaluate(`navigator.clipboard.writeText('nothing')`);
    const isCopied = () => eventually(async () => (await clipboard()) === gatewayUrl, clipboard);
    await page.getByRole('button', { name: 'copy the address of site' }).click();
    await isCopied();
    await clear();
    await page.keyboard.press('y');
    await isCopied();
    await clear();
    await choose(page, 'copy address site');
    await isCopied();
    const opened = page.context().waitForEvent('page');
    await page.keyboard.press('u');
    await (await opened).waitForURL(gatewayUrl);
    // What has no web page says so.
    await page.evaluate(`location.assign('#/services/db')`);
    await page.locator('h1', { hasText: 'db' }).waitFor();
    await page.keyboard.press('u');
    await page.getByText('It has no web page now.').waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest(
    'what needs a person is found in the list, by its state and by a key, and its logs are followed',
  ),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'api', group: 'site', cmd: 'echo from api; sleep 600' });
    await add(daemon, { name: 'broken', cmd: 'echo oh; exit 3' });
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'asker', cmd: 'sleep 600' });
    await ask(daemon, 'POST', '/v1/agents/asker/state', { state: 'blocked', message: 'May I?' });
    const page = await openBerth(daemon);
    await page.locator('.list-row[data-name=asker] .row-alarm', { hasText: 'blocked' }).waitFor();
    await page.locator('.table-row[data-name=asker] .state', { hasText: 'blocked' }).waitFor();
    const title = (text: string) => page.locator('h1', { hasText: text }).waitFor();
    for (const name of ['broken', 'asker', 'broken']) {
      await page.keyboard.press('n');
      await title(name);
    }
    await page.evaluate(`location.assign('#/services')`);
    await page.getByRole('searchbox').fill('blocked');
    await eventually(async () => (await page.locator('.list-row').count()) === 1);
    // The logs of what the table shows, and of a section of the list.
    await page.getByRole('searchbox').fill('site');
    await page.getByRole('button', { name: 'logs of 2 shown services' }).click();
    await page.locator('.log-text', { hasText: 'from api' }).waitFor();
    expect(await page.evaluate('location.hash')).toBe('#/logs?names=api%2Cweb');
    await page.goBack();
    await page.locator('.section-head', { hasText: 'site' }).hover();
    await page.getByRole('button', { name: 'logs of site', exact: true }).click();
    await page.locator('.log-text', { hasText: 'from api' }).waitFor();
    await choose(page, 'logs of without');
    await page.locator('.log-text', { hasText: 'oh' }).waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('a half-written prompt and the search of a log are still there on the way back'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'api', cmd: 'echo one; echo two; sleep 600' });
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'other', cmd: 'sleep 600' });
    const page = await openBerth(daemon, '#/agents/my_bot');
    const visit = async (view: string, name: string): Promise<void> => {
      await page.evaluate(`location.assign('#/${view}/${name}')`);
      await page.locator('h1', { hasText: name }).waitFor();
    };
    const prompt = (name: string) => page.getByRole('textbox', { name: `prompt for ${name}` });
    const search = page.getByRole('searchbox', { name: /kept of the log/ });
    await prompt('my_bot').fill('half a thought');
    await visit('agents', 'other');
    expect(await prompt('other').inputValue()).toBe('');
    await visit('services', 'api');
    await search.fill('two');
    await page.locator('.log-text mark').waitFor();
    await visit('services', 'web');
    expect(await search.inputValue()).toBe('');
    await visit('services', 'api');
    expect(await search.inputValue()).toBe('two');
    await page.locator('.log-text mark').waitFor();
    await visit('agents', 'my_bot');
    expect(await prompt('my_bot').inputValue()).toBe('half a thought');
    const kept = await page.evaluate('location.href + JSON.stringify([localStorage, sessionStorage])');
    expect(kept).not.toMatch(/half|two/);
    await page.reload();
    await prompt('my_bot').waitFor();
    expect(await prompt('my_bot').inputValue()).toBe('');
  },
);
