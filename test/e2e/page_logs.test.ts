// Ways through a log in the page: to a time, from a found line or an event to what is around it, to what is wrong.
import { writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

/** The texts of the lines that a person sees. */
const textsInSight = (page: Page): Promise<string[]> =>
  page.locator('.log-lines').evaluate((box) => {
    const { top, bottom } = box.getBoundingClientRect();
    return [...box.querySelectorAll('.log-text')].flatMap((line) => {
      const place = line.getBoundingClientRect();
      return place.top >= top && place.bottom <= bottom ? [line.textContent ?? ''] : [];
    });
  });

const inSight = (page: Page, ...wanted: readonly string[]): Promise<unknown> => {
  let seen: string[] = [];
  return eventually(
    async () => {
      seen = await textsInSight(page);
      return wanted.every((text) => seen.includes(text));
    },
    () => seen,
  );
};

it.runIf(hasChromium)(
  browserTest('a found line leads to the lines around it and back, and a log jumps to a time'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const { stateDir } = daemon;
    const first = 'seq -f "before %g" 1 1500; sleep 0.2; echo needle; mkfifo wire; read line < wire';
    await add(daemon, { name: 'long', cmd: `${first}; seq -f "after %g" 1 1500; sleep 600`, cwd: stateDir });
    const page = await openBerth(daemon, '#/logs?names=long&q=needle');
    await page.locator('.log-text mark').waitFor();
    expect(await page.locator('.log-line').count()).toBe(1);
    await page.locator('.log-time').click();
    await inSight(page, 'before 1500', 'needle');
    // It stays in sight while others follow.
    await writeFile(`${stateDir}/wire`, 'go on\n');
    await page.locator('.log-text', { hasText: /^after 1$/ }).waitFor();
    await inSight(page, 'before 1500', 'needle');
    expect(await page.locator('.log-line[data-found]').allInnerTexts()).toEqual([
      expect.stringContaining('needle'),
    ]);
    // The field has the time in the time zone of the person. The browser leaves out seconds that are 0.
    const time = await page.getByLabel('jump to a time').inputValue();
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?$/);
    await page.reload();
    await inSight(page, 'before 1500', 'needle', 'after 1');
    await page.goBack();
    await eventually(async () => (await page.locator('.log-line').count()) === 1);
    // From a pane to the same view.
    await page.evaluate(`location.assign('#/services/long')`);
    await page.getByRole('searchbox', { name: /kept of the log/ }).fill('needle');
    await page.locator('.log-text mark').waitFor();
    await page.locator('.log-time').click();
    await page.locator('h1', { hasText: 'Logs' }).waitFor();
    await inSight(page, 'before 1500', 'needle', 'after 1');
  },
);

it.runIf(hasChromium)(
  browserTest('a found line leads to that line, also among many of the same millisecond'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    // Lines of one read have one time.
    const burst = 'for (let i = 1; i <= 1500; i += 1) text += "line " + i + "\\n"';
    const cmd = `node -e 'let text = ""; ${burst}; process.stdout.write(text)'; sleep 600`;
    await add(daemon, { name: 'burst', cmd, cwd: daemon.stateDir });
    const page = await openBerth(daemon, '#/services/burst');
    for (const number of [1444, 2, 777]) {
      await page.evaluate(`location.assign('#/services/burst')`);
      await page.getByRole('searchbox', { name: /kept of the log/ }).fill(`line ${number}`);
      const found = page.locator('.log-line', { hasText: new RegExp(`line ${number}$`) });
      await page.locator('.log-text mark').first().waitFor();
      await found.locator('.log-time').click();
      await page.locator('h1', { hasText: 'Logs' }).waitFor();
      await inSight(page, `line ${number - 1}`, `line ${number}`, `line ${number + 1}`);
      expect(await page.locator('.log-line[data-found] .log-text').allTextContents()).toEqual([
        `line ${number}`,
      ]);
    }
    // Another time is not that line.
    await page.getByLabel('jump to a time').fill('2020-01-01T00:00:00');
    await page.locator('.log-line[data-found]').waitFor({ state: 'detached' });
    expect(page.url()).not.toContain('line=');
  },
);

it.runIf(hasChromium)(
  browserTest('a jump to a time finds it among lines that are wrapped, also after the last one'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const { stateDir } = daemon;
    const long = (what: string) => `seq -f "${what} %g $(printf %0300d 0)" 1 1500`;
    const cmd = `${long('before')}; sleep 0.2; echo needle; mkfifo wire; read line < wire; ${long('after')}; exit 4`;
    await add(daemon, { name: 'wrapped', cmd, cwd: stateDir });
    const page = await openBerth(daemon, '#/logs?names=wrapped&q=needle');
    await page.locator('.log-text mark').waitFor();
    await writeFile(`${stateDir}/wire`, 'go on\n');
    await page.locator('.list-row[data-name=wrapped]', { hasText: 'exit 4' }).waitFor();
    await page.locator('.log-time').click();
    await inSight(page, 'needle');
    await page.evaluate(`location.assign('#/events?kind=trouble')`);
    await page.locator('.event-row', { hasText: 'exit 4' }).locator('a[title*="log of wrapped"]').click();
    await inSight(page, `after 1500 ${'0'.repeat(300)}`);
  },
);

it.runIf(hasChromium)(
  browserTest('an event leads to the log at its time, and a key leaves only warnings and errors'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const cmd = 'seq -f "line %g" 1 1500; echo "ERROR: no queue"; sleep 0.3; exit 4';
    await add(daemon, { name: 'faulty', cmd });
    await add(daemon, { name: 'other', cmd: 'echo WARN: slow; echo fine; sleep 600' });
    const page = await openBerth(daemon, '#/events?kind=trouble');
    const crash = page.locator('.event-row', { hasText: 'exit 4' });
    await crash.locator('a[title*="log of faulty"]').click();
    await page.locator('h1', { hasText: 'Logs' }).waitFor();
    await inSight(page, 'line 1500', 'ERROR: no queue');
    // In the panes, then in the view with its own filter, which the address keeps.
    const texts = (): Promise<string[]> => page.locator('.log-text').allTextContents();
    const areShown = (...wanted: readonly string[]) =>
      eventually(async () => String((await texts()).toSorted()) === String(wanted), texts);
    await page.evaluate(`location.assign('#/services/faulty?panes=log.faulty~log.other')`);
    await page.locator('.log-text', { hasText: 'fine' }).waitFor();
    await page.keyboard.press('e');
    await areShown('ERROR: no queue', 'WARN: slow');
    expect(await page.getByRole('button', { name: 'only warnings and errors', pressed: true }).count()).toBe(
      2,
    );
    await page.keyboard.press('e');
    await page.locator('.log-text', { hasText: 'fine' }).waitFor();
    await page.evaluate(`location.assign('#/logs?names=faulty,other')`);
    await page.locator('.log-text', { hasText: 'fine' }).waitFor();
    await page.getByRole('button', { name: 'only warnings and errors' }).click();
    await areShown('ERROR: no queue', 'WARN: slow');
    expect(await page.evaluate('location.hash')).toContain('level=warn');
  },
);

it.runIf(hasChromium)(
  browserTest('the filters of logs select services, streams, runs, levels and times, and are in the address'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const cmd = 'echo "INFO calm"; echo "ERROR loud" >&2; echo "code 4711"; sleep 600';
    for (const name of ['one', 'two']) await add(daemon, { name, cmd });
    await eventually(async () => (await ask(daemon, 'GET', '/v1/services/one/logs')).lines.length === 3);
    await ask(daemon, 'POST', '/v1/services/one/restart');
    const page = await openBerth(daemon, '#/logs?names=one');
    let seen: string[] = [];
    const shows = (...lines: string[]) =>
      eventually(
        async () => {
          seen = (await page.locator('.log-text').allInnerTexts()).sort();
          return seen.join('|') === lines.join('|');
        },
        () => [page.url(), seen],
      );
    const once = ['ERROR loud', 'INFO calm', 'code 4711'];
    const twice = once.flatMap((line) => [line, line]);
    await shows(...twice);
    await page.getByLabel('add a service').selectOption('two');
    await shows(...once.flatMap((line) => [line, line, line]));
    await page.getByRole('button', { name: 'leave out one' }).click();
    await shows(...once);
    await page.getByLabel('add a service').selectOption('one');
    await page.getByRole('button', { name: 'leave out two' }).click();
    await shows(...twice);
    await page.getByRole('button', { name: 'last run' }).click();
    await shows(...once);
    await page.getByRole('button', { name: 'stderr' }).click();
    await shows('ERROR loud');
    expect(page.url()).toMatch(/names=one.*run=.*stream=|names=one.*stream=.*run=/);
    await page.reload();
    await shows('ERROR loud');
    await page.getByRole('button', { name: 'stderr' }).click();
    await page.getByLabel('least level').selectOption('error');
    await shows('ERROR loud');
    await page.getByLabel('least level').selectOption('');
    await page.getByRole('button', { name: 'regex' }).click();
    await page.getByRole('searchbox', { name: /kept of the log/ }).fill('code \\d{4}$');
    await shows('code 4711');
    await page.getByRole('searchbox', { name: /kept of the log/ }).fill('');
    await page.getByLabel('since').selectOption('15m');
    await shows(...once);
    await page.getByLabel('jump to a time').fill('2020-01-01T00:00:00');
    await shows(...once);
  },
);
