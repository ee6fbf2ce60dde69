// What axe and the width of the screen say of a page.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import type { Device } from './browser.ts';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The devices and themes on which every view is looked at. */
export const DEVICES: readonly Device[] = [
  { isPhone: false, theme: 'light' },
  { isPhone: false, theme: 'dark' },
  { isPhone: true, theme: 'light' },
  { isPhone: true, theme: 'dark' },
];

/** What axe finds wrong in the page as it is. */
export async function faults(page: Page): Promise<string[]> {
  // The policy of the page forbids scripts in it; the developer tools run them all the same.
  await page.evaluate(await readFile(AXE, 'utf8'));
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}

/** Whether the page is wider than its window. */
export const scrollsSideways = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth > innerWidth');
