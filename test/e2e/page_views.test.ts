// The views of the page at `/` in a real browser, on the real daemon.
import { writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { DEVICES, faults, scrollsSideways } from './page_axe.ts';
import { add, ask, choose, openBerth, withServices } from './page_services.ts';

const row = (page: Page, name: string) => page.locator(`.table-row[data-name=${name}]`);

it.runIf(hasChromium)(
  browserTest('services are listed, searched, started and stopped, by hand and by keys'),
  BROWSER_TEST,
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
    const web = await row(page, 'web').locator('a.address').getAttribute('href');
    expect(web).toMatch(/^http:\/\/web\.localhost:\d+\/$/);
    expect(await row(page, 'my_bot').locator('.address').getAttribute('href')).toBeNull();
    expect(await row(page, 'db').locator('.address').getAttribute('href')).toBeNull();
    await page.keyboard.press('/');
    await page.keyboard.type('site');
    await eventually(async () => (await page.locator('.list-row').count()) === 1);
    expect(await page.evaluate('location.hash')).toBe('#/services?find=site');
    await page.getByRole('searchbox').fill('site stopped');
    await page.getByText('Nothing has these words.').waitFor();
    await page.getByRole('searchbox').fill('');
    await row(page, 'bad').getByRole('button', { name: 'start bad', exact: true }).click();
    await row(page, 'bad').getByText('exit 3').waitFor();
    await eventually(async () => (await page.title()) === '(1) Berth');
    const icon = await page.locator('link[rel=icon]').getAttribute('href');
    expect(decodeURIComponent(icon ?? '')).toContain('>1</text>');
    // What failed says why, line by line.
    await row(page, 'bad').locator('a.cell-name').click();
    await page.getByText('exit code 3').first().waitFor();
    expect(await page.locator('.last-lines').textContent()).toBe('no database\nset <b>DB</b>\n');
    // By keys alone.
    const title = (text: string) => page.locator('h1', { hasText: text }).waitFor();
    const state = (word: string) => page.locator('.view-head .state', { hasText: word }).waitFor();
    await page.keyboard.press('j');
    await title('db');
    await page.keyboard.press('s');
    await state('running');
    await page.keyboard.press('x');
    await state('stopped');
    // The palette has the keyboard before another key can come: what is typed at once is not taken for keys.
    const focused = await page.evaluate(`(async () => {
      const keys = { key: 'k', ctrlKey: true, bubbles: true };
      document.body.dispatchEvent(new KeyboardEvent('keydown', keys));
      await null;
      return document.activeElement.getAttribute('role');
    })()`);
    expect(focused).toBe('combobox');
    await page.keyboard.press('Escape');
    await choose(page, 'start db');
    await state('running');
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('go to anything').first().waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('4');
    await title('Events');
    await page.goBack();
    await title('db');
    await page.reload();
    await title('db');
    // Sorted one way, the other way, and not at all.
    await page.evaluate(`location.assign('#/services')`);
    const byName = page.getByRole('button', { name: 'sort by name' });
    const names = () =>
      page
        .locator('.table-row[data-name]')
        .evaluateAll((rows) => rows.map((one) => one.getAttribute('data-name')));
    for (const order of [
      ['bad', 'db', 'my_bot', 'web'],
      ['web', 'my_bot', 'db', 'bad'],
      ['bad', 'db', 'web', 'my_bot'],
    ]) {
      await byName.click();
      await eventually(
        async () => String(await names()) === String(order),
        () => order,
      );
    }
    // Of many, only those in sight are elements, in the order of their numbers.
    await Promise.all(
      Array.from({ length: 100 }, (_, at) => add(daemon, { name: `svc-${at}`, port: null }, false)),
    );
    await page.evaluate(`location.assign('#/services')`);
    await row(page, 'svc-4').waitFor();
    expect(await page.locator('.list-row').count()).toBeLessThan(60);
    expect(await page.locator('.table-row').count()).toBeLessThan(60);
    // The list grows while the page hears of the registrations.
    await eventually(async () => {
      await page.evaluate(
        `document.querySelectorAll('.rows').forEach((box) => { box.scrollTop = box.scrollHeight })`,
      );
      return row(page, 'svc-99').isVisible();
    });
  },
);

it.runIf(hasChromium)(
  browserTest('logs follow the selected service, are searched, and hold thousands of lines'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const { stateDir } = daemon;
    const cmd =
      'printf "<b>first</b>\\n\\033[31mred\\033[0m\\n"; mkfifo wire; while read line; do echo "$line"; done < wire; exit 4';
    await add(daemon, { name: 'chatty', cmd, cwd: stateDir });
    await add(daemon, { name: 'long', cmd: 'seq 1 5000; sleep 600' });
    const page = await openBerth(daemon, '#/services/chatty');
    const lines = page.locator('.log-text');
    await lines.getByText('<b>first</b>', { exact: true }).waitFor();
    expect(await page.locator('.log-text .a-1').textContent()).toBe('red');
    await writeFile(`${stateDir}/wire`, 'got one\n{"level":"warn","msg":"got two","n":2}\n');
    await page.locator('.log-run', { hasText: 'exit 4' }).waitFor();
    expect(await lines.allTextContents()).toEqual(['<b>first</b>', 'red', 'got one', 'got two n=2']);
    await page.getByRole('button', { name: 'fields' }).click();
    expect(await page.locator('pre.json').textContent()).toContain('"level": "warn"');
    await page.getByRole('searchbox', { name: /kept of the log/ }).fill('GOT');
    await page.locator('mark').nth(1).waitFor();
    expect(await lines.count()).toBe(2);
    await page.getByRole('button', { name: 'close the log of chatty' }).click();
    expect(await page.locator('.pane').count()).toBe(0);
    // A long one: the newest lines first, older ones when somebody scrolls to them.
    await page.evaluate(`location.assign('#/logs?names=long')`);
    await page.locator('.log-text', { hasText: /^5000$/ }).waitFor();
    await eventually(async () => {
      await page.locator('.log-lines').evaluate((element) => {
        element.scrollTop = 0;
      });
      return (await page.locator('.log-text', { hasText: /^1$/ }).count()) > 0;
    });
    expect(await page.locator('.log-line').count()).toBeLessThan(1_500);
    await page.getByText('live · 5001 lines').waitFor();
    await page.getByRole('button', { name: 'newest lines' }).click();
    await page.locator('.log-text', { hasText: /^5000$/ }).waitFor();
    // What follows the end still does when it has less room.
    await page.setViewportSize({ width: 1440, height: 500 });
    const isAtEnd = `(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight < 2)(
      document.querySelector('.log-lines'))`;
    await eventually(() => page.evaluate<boolean>(isAtEnd));
  },
);

it.runIf(hasChromium)(
  browserTest('nothing that a program says becomes more than text'),
  BROWSER_TEST,
  async () => {
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
      if (hash.startsWith('#/logs'))
        await page.locator('.log-text', { hasText: 'onerror' }).first().waitFor();
      if (hash === '#/agents/evil-bot') await page.getByText(/attached · \d+×\d+/).waitFor();
      expect(await elements().count()).toBe(0);
      expect(await page.evaluate(`/[\\u202e\\u2066]/.test(document.body.textContent)`)).toBe(false);
    }
    expect(await page.title()).toBe('(1) Berth');
  },
);

it.runIf(hasChromium)(
  browserTest('axe finds nothing, and nothing scrolls sideways, on every device'),
  BROWSER_TEST,
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
        await page.locator('h1').waitFor();
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
