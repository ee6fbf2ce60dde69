// The views of the page at `/` in a real browser, on the real daemon.
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { browserTest, type Device, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** What axe finds wrong in the page as it is. */
async function faults(page: Page): Promise<string[]> {
  // The policy of the page forbids scripts in it; the developer tools run them all the same.
  const { readFile } = await import('node:fs/promises');
  await page.evaluate(await readFile(AXE, 'utf8'));
  const { violations } = await page.evaluate<any>('axe.run()');
  return violations.map(({ id, nodes }: any) => `${id}: ${nodes.map((node: any) => node.html).join(' | ')}`);
}

const scrollsSideways = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth > innerWidth');

const row = (page: Page, name: string) => page.locator(`.table-row[data-name=${name}]`);

describe('services', () => {
  it.runIf(hasChromium)(
    browserTest('are listed with their state, searched, started and stopped'),
    async () => {
      const daemon = await withServices();
      await add(
        daemon,
        { name: 'bad', cmd: 'echo no database; echo "set <b>DB</b>"; sleep 0.2; exit 3' },
        false,
      );
      const page = await openBerth(daemon);
      await row(page, 'web').getByText('running').waitFor();
      expect(await row(page, 'db').locator('.state').textContent()).toBe('stopped');
      expect(await page.locator('.section-head h2').allTextContents()).toEqual([
        'Without a group',
        'site',
        'Agents',
      ]);
      const address = row(page, 'my_bot').locator('a.address');
      expect(await address.getAttribute('href')).toMatch(/^http:\/\/my-bot\.agents\.localhost:\d+\/$/);
      await page.keyboard.press('/');
      await page.keyboard.type('site');
      await eventually(async () => (await page.locator('.list-row').count()) === 1);
      expect(await page.evaluate('location.hash')).toBe('#/services?find=site');
      await page.getByRole('searchbox').fill('');
      await row(page, 'db').getByRole('button', { name: 'start db', exact: true }).click();
      await row(page, 'db').getByText('running').waitFor();
      await row(page, 'db').getByRole('button', { name: 'stop db', exact: true }).click();
      await row(page, 'db').getByText('stopped').waitFor();
      await row(page, 'bad').getByRole('button', { name: 'start bad', exact: true }).click();
      await row(page, 'bad').getByText('exit 3').waitFor();
      await eventually(async () => (await page.title()) === '(1) Berth');
      // What failed says why, line by line.
      await row(page, 'bad').locator('a.cell-name').click();
      await page.getByText('exit code 3').first().waitFor();
      expect(await page.locator('.last-lines').textContent()).toBe('no database\nset <b>DB</b>\n');
    },
  );

  it.runIf(hasChromium)(browserTest('obey the keyboard alone, and go back'), async () => {
    const page = await openBerth(await withServices());
    await row(page, 'web').waitFor();
    await page.keyboard.press('j');
    await page.locator('h1', { hasText: 'db' }).waitFor();
    await page.keyboard.press('s');
    await page.locator('.view-head .state', { hasText: 'running' }).waitFor();
    await page.keyboard.press('x');
    await page.locator('.view-head .state', { hasText: 'stopped' }).waitFor();
    await page.keyboard.press('j');
    await page.locator('h1', { hasText: 'web' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('start db');
    await page.keyboard.press('Enter');
    await page.locator('.list-row[data-name=db] [data-tone=good]').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('go to anything').first().waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('4');
    await page.locator('h1', { hasText: 'Events' }).waitFor();
    await page.goBack();
    await page.locator('h1', { hasText: 'web' }).waitFor();
    await page.reload();
    await page.locator('h1', { hasText: 'web' }).waitFor();
  });

  it.runIf(hasChromium)(browserTest('stay few elements when they are many'), async () => {
    const daemon = await withServices();
    await Promise.all(
      Array.from({ length: 300 }, (_, at) => add(daemon, { name: `svc-${at}`, port: null }, false)),
    );
    const page = await openBerth(daemon);
    await row(page, 'svc-4').waitFor();
    expect(await page.locator('.list-row').count()).toBeLessThan(60);
    expect(await page.locator('.table-row').count()).toBeLessThan(60);
    await page.locator('.table-row').first().hover();
    await page.evaluate(
      `document.querySelectorAll('.rows').forEach((box) => { box.scrollTop = box.scrollHeight })`,
    );
    // In the order of their numbers.
    await row(page, 'svc-299').waitFor();
  });
});

describe('logs', () => {
  it.runIf(hasChromium)(browserTest('follow the selected service, its past included'), async () => {
    const daemon = await withServices();
    const cmd =
      'printf "<b>first</b>\\n\\033[31mred\\033[0m\\n"; while read line; do echo "got $line"; done < wire; exit 4';
    const { stateDir } = daemon;
    await add(daemon, { name: 'chatty', cmd: `mkfifo wire; ${cmd}`, cwd: stateDir });
    const page = await openBerth(daemon, '#/services/chatty');
    const lines = page.locator('.log-text');
    await lines.getByText('<b>first</b>', { exact: true }).waitFor();
    expect(await page.locator('.log-text .a-1').textContent()).toBe('red');
    await writeFile(`${stateDir}/wire`, 'one\n{"level":"warn","msg":"two","n":2}\n');
    await page.locator('.log-run', { hasText: 'exit 4' }).waitFor();
    expect(await lines.allTextContents()).toEqual([
      '<b>first</b>',
      'red',
      'got one',
      'got {"level":"warn","msg":"two","n":2}',
    ]);
    await page.getByRole('searchbox', { name: /kept of the log/ }).fill('GOT');
    await page.locator('mark').nth(1).waitFor();
    expect(await lines.count()).toBe(2);
    await page.getByRole('button', { name: 'close the log of chatty' }).click();
    expect(await page.locator('.pane').count()).toBe(0);
  });

  it.runIf(hasChromium)(browserTest('hold 20,000 lines, and scroll to the first'), async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'long', cmd: 'seq 1 20000; sleep 600' });
    const page = await openBerth(daemon, '#/logs?names=long');
    const box = page.locator('.log-lines');
    await page.locator('.log-text', { hasText: /^20000$/ }).waitFor();
    const toTop = async (): Promise<boolean> => {
      await box.evaluate((element) => {
        element.scrollTop = 0;
      });
      return (await page.locator('.log-text', { hasText: /^1$/ }).count()) > 0;
    };
    await eventually(toTop);
    expect(await page.locator('.log-line').count()).toBeLessThan(1_500);
    await page.getByText('live · 20001 lines').waitFor();
    await page.getByRole('button', { name: 'newest lines' }).click();
    await page.locator('.log-text', { hasText: /^20000$/ }).waitFor();
  });
});

it.runIf(hasChromium)(browserTest('nothing that a program says becomes more than text'), async () => {
  const daemon = await withServices();
  const evil = [
    '<img src=x onerror=alert(1)>',
    '<script>document.title="owned"</script>',
    'javascript:alert(1)',
    '\\033]8;;javascript:alert(1)\\033\\\\link\\033]8;;\\033\\\\',
    '\\033]0;owned\\007\\033[2J\\033[999;999H',
    '\\342\\200\\256gpj.exe \\342\\201\\246',
    '{"msg":"<b onmouseover=alert(1)>","__proto__":{"a":1},"constructor":"x"}',
  ];
  const cmd = `printf '${evil.join('\\n').replaceAll("'", '')}\\n'; printf '${evil.join('\\n')}\\n' >&2; sleep 0.2; exit 9`;
  await add(daemon, { name: 'evil', cmd, labels: ['<img src=x onerror=alert(2)>'], cwd: daemon.stateDir });
  await ask(daemon, 'POST', '/v1/agents/spinup', {
    name: 'evil-bot',
    cmd: `printf '${evil.join('\\n')}'; sleep 600`,
  });
  const page = await openBerth(daemon);
  page.on('dialog', () => {
    throw new Error('a dialog');
  });
  const elements = () =>
    page.locator('img, iframe, object, embed, form, a[href^="javascript:"], script:not([src])');
  for (const hash of [
    '#/services/evil',
    '#/agents',
    '#/agents/evil-bot',
    '#/logs?names=evil',
    '#/events',
    '#/services',
  ]) {
    await page.evaluate((to) => location.assign(to), hash);
    await page.locator('h1').waitFor();
    if (hash.startsWith('#/logs')) await page.locator('.log-text', { hasText: 'onerror' }).first().waitFor();
    if (hash === '#/agents/evil-bot') await page.getByText(/attached · \d+×\d+/).waitFor();
    expect(await elements().count()).toBe(0);
    expect(await page.evaluate(`/[\\u202e\\u2066]/.test(document.body.textContent)`)).toBe(false);
  }
  expect(await page.title()).toBe('(1) Berth');
});

const DEVICES: readonly Device[] = [
  { isPhone: false, theme: 'light' },
  { isPhone: true, theme: 'dark' },
  { isPhone: false, theme: 'dark' },
  { isPhone: true, theme: 'light' },
];

it.runIf(hasChromium)(
  browserTest('axe finds nothing, and nothing scrolls sideways, on every device'),
  async () => {
    const daemon = await withServices();
    await add(daemon, {
      name: `long-${'name-'.repeat(10)}of-it`,
      cmd: 'echo oh; exit 1',
      dependsOn: ['web'],
    });
    const views = [
      '#/services',
      `#/services/long-${'name-'.repeat(10)}of-it`,
      '#/agents',
      '#/agents/my_bot',
      '#/logs',
      '#/events',
      '#/cloud',
    ];
    for (const device of DEVICES) {
      const page = await openBerth(daemon, '', device);
      for (const hash of views) {
        await page.evaluate((to) => location.assign(to), hash);
        if (!device.isPhone || hash !== '#/services') await page.locator('h1').waitFor();
        if (hash.startsWith('#/services/')) await page.locator('.chart canvas').nth(1).waitFor();
        expect([device, hash, await scrollsSideways(page), await faults(page)]).toEqual([
          device,
          hash,
          false,
          [],
        ]);
      }
      await page.context().close();
    }
  },
);
