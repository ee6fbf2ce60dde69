// Terminals of agents in the page: what they show is what the daemon says that the screen is.
import type { Page } from 'playwright-core';
import { it } from 'vitest';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { ask, daemonOn, openBerth } from './page_services.ts';

/** The screen as the page has it, through its button. */
async function shownScreen(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'copy the screen' }).click();
  return page.evaluate('navigator.clipboard.readText()');
}

async function trueScreen(daemon: Daemon, name: string): Promise<string> {
  const { lines } = await ask(daemon, 'GET', `/v1/agents/${name}/screen`);
  return lines.join('\n').replace(/\n+$/, '');
}

const attached = (page: Page) => page.getByText(/attached · \d+×\d+/).waitFor();

/** Waits until both are the same, and have `part`. */
const isSame = (daemon: Daemon, page: Page, name: string, part: string) =>
  eventually(async () => {
    const screen = await trueScreen(daemon, name);
    return screen.includes(part) && (await shownScreen(page)) === screen;
  });

const PROGRAMS: readonly [name: string, cmd: string, part: string][] = [
  ['painter', `printf '\\033[?1049h\\033[2J\\033[3;4Hcolumn four'; sleep 600`, 'column four'],
  [
    'wide',
    `printf '日本語 👩‍💻 é̀ ｶﾅ │ ┌─┐ ✅\\n\\033[7minverse\\033[0m\\033[5;10Hthere'; sleep 600`,
    'there',
  ],
  ['flood', `seq 1 1500000; echo the end; sleep 600`, 'the end'],
  [
    'scroll',
    `printf '\\033[5;10r\\033[5;1H'; seq 1 40; printf '\\033[r\\033[20;1Hbelow'; sleep 600`,
    'below',
  ],
];

it.runIf(hasChromium)(browserTest('show what the screen is, in every size'), BROWSER_TEST, async () => {
  const daemon = await daemonOn(0);
  for (const [name, cmd] of PROGRAMS) await ask(daemon, 'POST', '/v1/agents/spinup', { name, cmd });
  const page = await openBerth(daemon);
  for (const [name, , part] of PROGRAMS) {
    await page.evaluate((to) => location.assign(to), `#/agents/${name}`);
    await page.locator('h1', { hasText: name }).waitFor();
    await attached(page);
    await isSame(daemon, page, name, part);
  }
  await page.evaluate(`location.assign('#/agents/painter')`);
  await page.setViewportSize({ width: 900, height: 500 });
  await eventually(async () => (await ask(daemon, 'GET', '/v1/agents/painter/screen')).rows < 32);
  await isSame(daemon, page, 'painter', 'column four');
});
