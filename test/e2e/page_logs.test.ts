// Ways through a log in the page: to a time, from a found line or an event to what is around it, to what is wrong.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, openBerth, withServices } from './page_services.ts';

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
    const cmd =
      'seq -f "before %g" 1 1500; sleep 0.2; echo needle; sleep 0.2; seq -f "after %g" 1 1500; sleep 600';
    await add(daemon, { name: 'long', cmd });
    const page = await openBerth(daemon, '#/logs?names=long&q=needle');
    await page.locator('.log-text mark').waitFor();
    expect(await page.locator('.log-line').count()).toBe(1);
    await page.locator('.log-time').click();
    await inSight(page, 'before 1500', 'needle', 'after 1');
    expect(await page.locator('.log-line[data-found]').allInnerTexts()).toEqual([
      expect.stringContaining('needle'),
    ]);
    // The field has the time in the time zone of the person.
    const time = await page.getByLabel('jump to a time').inputValue();
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
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
