// The script that the page at `/` loads before its first terminal, the time from a cold cache until it shows
// 100 services, and a busy tab. The floor is a response of the same daemon, shown by the same browser; for
// the bytes it is 1, for the busy tab the same tab before the load.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { type Browser, chromium } from 'playwright-core';
import { dashboardUrl } from '../src/settings/build_paths.ts';
import { registerMany, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, cost, type Row } from './kit/harness.ts';
import { busyPage } from './page_busy.ts';

const SERVICES = 100;
/** All scripts except those of terminals. */
const SCRIPTS = ['page.js', 'chart.js'];
const KIB = 1_024;

const kibibytes = (file: string): number =>
  gzipSync(readFileSync(new URL(file, dashboardUrl(import.meta.url)))).length / KIB;

/** The milliseconds until `selector` is visible, in a profile without a cache. */
async function shown(browser: Browser, url: string, selector: string): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const began = performance.now();
  await page.goto(url, { waitUntil: 'commit' });
  await page.locator(selector).first().waitFor();
  const ms = performance.now() - began;
  await context.close();
  return ms;
}

const firstPaint = (browser: Browser): Promise<Row> =>
  withFolder(async (folder) => {
    const daemon = await startDaemon(folder);
    try {
      await registerMany(daemon, SERVICES);
      const url = `http://127.0.0.1:${daemon.port}`;
      return await cost(`first paint, ${SERVICES} services`, 'ms', {
        floor: () => shown(browser, `${url}/livez`, 'body'),
        subject: () => shown(browser, url, '.table-row[data-name]'),
        turns: 7,
      });
    } finally {
      await daemon.end();
    }
  });

async function run(): Promise<Row[]> {
  const bytes = await cost('script before a terminal', 'KiB, gzip', {
    floor: async () => 1,
    subject: async () => SCRIPTS.reduce((sum, file) => sum + kibibytes(file), 0),
    turns: 2,
  });
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  try {
    return [bytes, await firstPaint(browser), ...(await busyPage(browser))];
  } finally {
    await browser.close();
  }
}

/** What it takes to open the page at `/`. */
export const page: Benchmark = {
  name: 'page',
  question:
    'How much does the page load, how long until it shows 100 services, and is it still smooth when all moves?',
  run,
};
