// Pages in a real browser. One browser serves a test file; each page has a profile of its own.
import { spawnSync } from 'node:child_process';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, expect } from 'vitest';

const PROGRAM = '/usr/bin/chromium';

/** Whether the browser is installed. */
export const hasChromium = spawnSync(PROGRAM, ['--version']).error === undefined;

/** The name of a test, which says why it is skipped where it is. */
export const browserTest = (what: string): string =>
  hasChromium ? what : `${what} (skipped: chromium is not installed)`;

/** A browser, a page and a daemon start in each test. That takes long on a machine with much else to do. */
export const BROWSER_TEST = { timeout: 120_000 };

/** What a page is seen on. */
export interface Device {
  isPhone?: boolean;
  theme?: 'light' | 'dark';
}

const DESKTOP = { viewport: { width: 1440, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
/**
 * What a browser says by itself: of its graphics, of a server that is gone, of an answer that is an error; and what
 * the terminal says on a machine that is busy.
 */
const OWN_WORDS =
  /task queue exceeded|GL Driver Message|net::ERR_|Failed to load resource|WebSocket connection to/;

/** Matches no text. */
const NOTHING = /(?!)/;

let browser: Promise<Browser> | undefined;
const open: Page[] = [];
const complaints: string[] = [];

/**
 * Opens `url` in a profile of its own, which ends with the test. What the page complains about fails the test,
 * unless `mayComplain` matches it.
 */
export async function openPage(
  url: string,
  { isPhone = false, theme = 'light', mayComplain = NOTHING }: Device & { mayComplain?: RegExp } = {},
): Promise<Page> {
  browser ??= chromium.launch({
    executablePath: PROGRAM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'],
  });
  const context = await (await browser).newContext({ ...(isPhone ? PHONE : DESKTOP), colorScheme: theme });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  // The test's own timeout is the limit.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  open.push(page);
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    const text = message.text();
    if (!OWN_WORDS.test(text) && !mayComplain.test(text))
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  await page.goto(url);
  return page;
}

/** Hides the tab, or shows it, as the browser reports it to the page. */
export const setHidden = (page: Page, isHidden: boolean): Promise<unknown> =>
  page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
    document.dispatchEvent(new Event('visibilitychange'));
  `);

afterEach(async () => {
  for (const page of open.splice(0)) await page.context().close();
  // One text, which a report of the failure shows in whole.
  expect(complaints.splice(0).join('\n')).toBe('');
});

afterAll(async () => {
  await (await browser)?.close();
  browser = undefined;
});
