// Several services marked in the page, and what is done to all of them.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { DEVICES, faults, scrollsSideways } from './page_axe.ts';
import { add, openBerth, withServices } from './page_services.ts';

const bar = (page: Page) => page.getByRole('toolbar', { name: 'marked services' });
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const listed = (page: Page, name: string) => page.locator(`.list-row[data-name=${name}]`);
const isShown = (page: Page, name: string, state: string) =>
  listed(page, name)
    .and(page.locator(`[title="${name}: ${state}"]`))
    .waitFor();
const marked = (page: Page): Promise<(string | null)[]> =>
  page
    .locator('.list-row[aria-checked=true]')
    .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-name')));

it.runIf(hasChromium)(
  browserTest('marked services are started, restarted and stopped together, by keys and by boxes'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    for (const name of ['s1', 's2', 's3', 's4']) await add(daemon, { name, group: 'shop' }, false);
    const page = await openBerth(daemon, '#/services/s1');
    await page.locator('.view-head .state', { hasText: 'stopped' }).waitFor();
    await page.keyboard.press('Space');
    await bar(page).getByText('1 marked').waitFor();
    await page.keyboard.press('Shift+ArrowDown');
    await page.locator('h1', { hasText: 's2' }).waitFor();
    await page.keyboard.press('Shift+ArrowDown');
    await bar(page).getByText('3 marked').waitFor();
    expect(await marked(page)).toEqual(['s1', 's2', 's3']);
    await page.keyboard.press('Space');
    await bar(page).getByText('2 marked').waitFor();
    // A key acts on what is marked, not on what is selected.
    await page.keyboard.press('s');
    const dialog = page.getByRole('dialog', { name: 'start 2 services' });
    await dialog.getByText('s1, s2').waitFor();
    await press(page, 'start 2 services');
    for (const name of ['s1', 's2']) await isShown(page, name, 'running');
    await isShown(page, 's3', 'stopped');
    await page.keyboard.press('Escape');
    await eventually(async () => (await bar(page).count()) === 0);
    // A range by boxes in the table, in its order. Agents have none, and no range has them.
    await page.evaluate(`location.assign('#/services')`);
    await press(page, 'mark services');
    await page.getByLabel('mark web').waitFor();
    expect(await page.getByLabel('mark my_bot').count()).toBe(0);
    await page.getByRole('button', { name: 'sort by name' }).click();
    await page.getByLabel('mark db').check();
    await page.getByLabel('mark s2').click({ modifiers: ['Shift'] });
    await bar(page).getByText('3 marked').waitFor();
    expect(await marked(page)).toEqual(['db', 's1', 's2']);
    // What is marked stays so while a search hides it. Only what runs is stopped.
    await page.getByRole('searchbox').fill('s2');
    await eventually(async () => (await page.locator('.list-row').count()) === 1);
    await bar(page).getByText('3 marked').waitFor();
    await press(page, 'stop 2 marked services');
    await press(page, 'stop 2 services');
    await page.getByRole('searchbox').fill('');
    for (const name of ['s1', 's2']) await isShown(page, name, 'stopped');
    await isShown(page, 'web', 'running');
    await press(page, 'unmark all');
    await eventually(async () => (await page.locator('input[type=checkbox]').count()) === 0);
  },
);

it.runIf(hasChromium)(
  browserTest('Space marks the selected service after a click on a row, and the row that Tab has reached'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    for (const name of ['s1', 's2', 's3', 's4']) await add(daemon, { name, group: 'shop' }, false);
    const page = await openBerth(daemon, '#/services');
    const isSelected = async (name: string) => {
      await page.locator('h1', { hasText: name }).waitFor();
      await eventually(async () => (await page.evaluate('document.activeElement.dataset.name')) === name);
    };
    await listed(page, 's1').click();
    await isSelected('s1');
    await page.keyboard.press('Space');
    for (const name of ['s2', 's3']) {
      await page.keyboard.press('ArrowDown');
      await isSelected(name);
      await page.keyboard.press('Space');
    }
    await bar(page).getByText('3 marked').waitFor();
    expect(await marked(page)).toEqual(['s1', 's2', 's3']);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    await isSelected('s4');
    await bar(page).getByText('4 marked').waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('on a phone a tap marks while services are marked, and opens them again after that'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const phone = await openBerth(daemon, '#/services', { isPhone: true });
    await phone.getByRole('button', { name: 'mark services' }).tap();
    await listed(phone, 'web').tap();
    await listed(phone, 'db').tap();
    await bar(phone).getByText('2 marked').waitFor();
    expect(await phone.evaluate('location.hash')).toBe('#/services');
    await phone.getByRole('button', { name: 'start 1 marked service', exact: true }).tap();
    await phone.getByRole('button', { name: 'start 1 service', exact: true }).tap();
    await isShown(phone, 'db', 'running');
    await phone.getByRole('button', { name: 'unmark all' }).tap();
    await listed(phone, 'web').tap();
    await phone.locator('h1', { hasText: 'web' }).waitFor();
    await phone.context().close();
    for (const device of DEVICES) {
      const page = await openBerth(daemon, '#/services', device);
      await page.getByRole('button', { name: 'mark services' }).click();
      await listed(page, 'web').click();
      await bar(page).getByText('1 marked').waitFor();
      expect([device, await scrollsSideways(page), await faults(page)]).toEqual([device, false, []]);
      await page.context().close();
    }
  },
);
