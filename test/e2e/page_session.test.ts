// The session of the page at `/`, and what it survives: docs/reference.md "Dashboard sessions".
import { readFile, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { deferred } from '../../src/runtime/deferred.ts';
import { eventually } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { exchangeKey, pageServer } from '../kit/page_session.ts';
import { BROWSER_TEST, browserTest, hasChromium, openPage } from './browser.ts';
import { add, daemonOn, openBerth, TOKEN, withServices } from './page_services.ts';

it.runIf(hasChromium)(browserTest('asks for a token that is missing or wrong'), BROWSER_TEST, async () => {
  const daemon = await withServices();
  const page = await openPage(`http://127.0.0.1:${daemon.port}/`);
  const token = page.getByLabel('Token (auth.token)');
  await page.getByText('berth open').waitFor();
  expect(await page.content()).not.toContain('web');
  await token.fill('wrong');
  await page.getByRole('button', { name: 'Use it' }).click();
  await page.getByText('does not know the token').waitFor();
  await token.fill(TOKEN);
  await token.press('Enter');
  await page.getByText('connected', { exact: true }).waitFor();
  await page.locator('[data-name=web]').first().waitFor();
  expect(await page.locator('#login').count()).toBe(0);
});

it.runIf(hasChromium)(
  browserTest('takes a code once, keeps the token nowhere, and loses nothing with a killed daemon'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(freePort());
    const cmd = 'n=0; while sleep 0.05; do n=$((n+1)); echo "line $n"; done';
    await add(daemon, { name: 'counter', cmd });
    await add(daemon, { name: 'greeter', cmd: 'echo hello; sleep 600' });
    const page = await openBerth(daemon, '#/services/counter?panes=log.counter');
    const paneOf = (name: string) => page.locator(`.pane[aria-label="log of ${name}"]`);
    const connected = page.getByText('connected', { exact: true });
    const kept =
      'JSON.stringify([location.href, { ...sessionStorage }, { ...localStorage }, document.cookie])';
    expect(await page.evaluate(kept)).not.toMatch(/a\+b|code=/);
    await page.reload();
    await connected.waitFor();
    // A new daemon does not know what the tab has stored; the tab that goes on does not need it.
    const storedKey = (): Promise<string> => page.evaluate(`sessionStorage.getItem('berth.key')`);
    const stored = await storedKey();
    expect((await exchangeKey(pageServer(daemon), stored)).status).toBe(201);
    const texts = () => paneOf('counter').locator('.log-text').allTextContents();
    await eventually(async () => (await texts()).length > 5);
    daemon.signal('SIGKILL');
    await daemon.exited;
    await page.getByText('reconnecting', { exact: true }).waitFor();
    // What is opened meanwhile waits for the next daemon.
    await page.evaluate(`location.assign('#/services/greeter?panes=log.counter~log.greeter')`);
    await paneOf('greeter').getByText('reconnecting').waitFor();
    const next = await daemonOn(daemon.port, daemon.stateDir);
    expect((await exchangeKey(pageServer(next), stored)).status).toBe(401);
    await connected.waitFor();
    expect(await storedKey()).not.toBe(stored);
    await paneOf('greeter').getByText('hello', { exact: true }).waitFor();
    await page.locator('.why', { hasText: 'Its process' }).waitFor();
    // Its lines go on where they were, each once.
    const numberOf = (text = ''): number => Number(text.slice('line '.length));
    let shown: string[] = [];
    const lastNumber = async (): Promise<number> => {
      shown = await paneOf('counter').locator('.log-state, .log-text, .log-more').allTextContents();
      return numberOf((await texts()).at(-1));
    };
    const after = (await lastNumber()) + 10;
    await eventually(
      async () => (await lastNumber()) > after,
      () => ({ after, state: shown[0], lines: shown.slice(-4) }),
    );
    const numbers = (await texts()).map(numberOf);
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
    await page.evaluate(`location.assign('#/events')`);
    await page.locator('.event-row', { hasText: 'counterstarted at' }).waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('asks again when the token has changed, and goes on where it was'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    await add(daemon, { name: 'greeter', cmd: 'echo hello; sleep 600' });
    const place = '#/services/greeter?panes=log.greeter';
    const page = await openBerth(daemon, place);
    const hello = page.locator('.log-text', { hasText: /^hello$/ });
    await hello.waitFor();
    const config = await readFile(daemon.configFile, 'utf8');
    await writeFile(daemon.configFile, config.replace(TOKEN, 'another-token-of-the-test'));
    daemon.signal('SIGHUP');
    const token = page.getByLabel('Token (auth.token)');
    await token.fill(TOKEN);
    await token.press('Enter');
    await page.getByRole('alert').getByText('does not know the token').waitFor();
    await token.fill('another-token-of-the-test');
    await token.press('Enter');
    await page.getByText('connected', { exact: true }).waitFor();
    await page.locator('.view-head .state', { hasText: 'running' }).waitFor();
    expect(await page.evaluate('location.hash')).toBe(place);
    await hello.waitFor();
    expect(await hello.count()).toBe(1);
  },
);

it.runIf(hasChromium)(
  browserTest('the form for the token takes the keys from what lies behind it, and gives the focus back'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const page = await openBerth(daemon, '#/agents/my_bot');
    const form = page.locator('#login');
    const focused = (): Promise<unknown> =>
      page.evaluate('[document.activeElement.id || document.activeElement.ariaLabel, location.hash]');
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/prompt')) sent.push(request.url());
    });
    let known = TOKEN;
    const asksFor = async (token: string): Promise<void> => {
      const config = await readFile(daemon.configFile, 'utf8');
      await writeFile(daemon.configFile, config.replace(known, token));
      known = token;
      daemon.signal('SIGHUP');
      await form.waitFor();
      expect(await focused()).toEqual(['token', '#/agents/my_bot']);
    };
    const isIn = async (back: string): Promise<void> => {
      await form.waitFor({ state: 'detached' });
      await page.getByText('connected', { exact: true }).waitFor();
      expect(await focused()).toEqual([back, '#/agents/my_bot']);
    };
    const prompt = page.getByLabel('prompt for my_bot');
    await prompt.click();
    await page.keyboard.type('half');
    await asksFor('another-token-of-the-test');
    // Without the token there is no page to go back to.
    for (const key of ['Escape', 'Escape', 'Control+k', 'Tab', 'Tab']) await page.keyboard.press(key);
    await page.getByLabel('Token (auth.token)').click();
    await page.keyboard.type('wrong');
    const typed = deferred<void>();
    await page.route('**/v1/**', async (route) => {
      await typed.promise;
      await route.continue();
    });
    await page.keyboard.press('Enter');
    await page.keyboard.type('another-token-of-the-test');
    typed.resolve();
    await page.getByRole('alert').getByText('does not know the token').waitFor();
    await page.unroute('**/v1/**');
    await page.keyboard.press('Enter');
    await isIn('prompt for my_bot');
    expect(await prompt.inputValue()).toBe('half');
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await asksFor('a-third-token-of-the-test');
    await page.keyboard.type('a-third-token-of-the-test');
    await page.keyboard.press('Enter');
    await isIn('find');
    await page.getByText(/attached · \d+×\d+/).waitFor();
    await page.locator('.xterm').click();
    await asksFor('a-fourth-token-of-the-test');
    await page.keyboard.type('a-fourth-token-of-the-test');
    await page.keyboard.press('Enter');
    await form.waitFor({ state: 'detached' });
    await eventually(() => page.evaluate(`document.activeElement.closest('.xterm') !== null`));
    expect(sent).toEqual([]);
  },
);
