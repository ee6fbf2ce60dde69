// What the buttons beside the name of a section do, and to which services and agents, on the real daemon.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, choose, openBerth, withServices } from './page_services.ts';

const headOf = (page: Page, title: string) =>
  page.locator('.section-head').filter({ has: page.getByRole('heading', { name: title, exact: true }) });

/** The buttons of a section, but for the one of its logs. */
const actionsOf = (page: Page, title: string): Promise<(string | null)[]> =>
  headOf(page, title)
    .getByRole('button', { name: /^(start|restart|stop)/ })
    .evaluateAll((buttons) => buttons.map((one) => one.getAttribute('aria-label')));

/** Presses the button that stops what a section lists. */
async function stop(page: Page, title: string): Promise<void> {
  await headOf(page, title).hover();
  await headOf(page, title).getByRole('button', { name: /^stop/ }).click();
}

/** Waits until exactly `names` run. */
async function untilRunning(daemon: Daemon, names: readonly string[]): Promise<void> {
  let running = '';
  const isSo = async () => {
    const { services } = await ask(daemon, 'GET', '/v1/services');
    running = services
      .filter(({ status }: { status: string }) => status === 'running')
      .map(({ name }: { name: string }) => name)
      .join();
    return running === names.join();
  };
  await eventually(isSo, () => running);
}

/** Answers the question, which must be `what` about `names`. */
async function confirm(page: Page, what: string, names: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: what });
  await dialog.getByText(names).waitFor();
  await dialog.getByRole('button', { name: what }).click();
}

it.runIf(hasChromium)(
  browserTest('the buttons of a section of agents ask, and act on the agents that it lists'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    for (const stack of ['p1', 'p2']) {
      await add(daemon, { name: `${stack}--web`, stack, group: stack, port: null });
      for (const one of ['bot', 'helper'])
        await ask(daemon, 'POST', '/v1/agents/spinup', { name: `${stack}--${one}`, stack, cmd: 'sleep 600' });
    }
    const others = ['p2--bot', 'p2--helper', 'p2--web', 'web'];
    await untilRunning(daemon, ['my_bot', 'p1--bot', 'p1--helper', 'p1--web', ...others]);
    const page = await openBerth(daemon);
    await page.locator('.list-row[data-name=p1--bot]').waitFor();
    expect(await actionsOf(page, 'p1 agents')).toEqual(
      ['start', 'restart', 'stop'].map((action) => `${action} all shown of p1 agents`),
    );
    await stop(page, 'p1 agents');
    await page.getByRole('dialog', { name: 'stop 2 agents' }).getByText('p1--bot, p1--helper').waitFor();
    await page.getByRole('button', { name: 'cancel' }).click();
    // Only what a search leaves.
    await page.getByRole('searchbox').fill('p1--helper');
    await eventually(async () => (await page.locator('.list-row').count()) === 1);
    await stop(page, 'p1 agents');
    await confirm(page, 'stop 1 agent', 'p1--helper');
    await untilRunning(daemon, ['my_bot', 'p1--bot', 'p1--web', ...others]);
    await page.getByRole('searchbox').fill('');
    await stop(page, 'Agents');
    await confirm(page, 'stop 1 agent', 'my_bot');
    await untilRunning(daemon, ['p1--bot', 'p1--web', ...others]);
    // The page may learn it later than the daemon's other clients.
    await page.locator('.list-row[data-name=p1--helper]', { hasText: 'stopped' }).waitFor();
    await choose(page, 'start all p1 agents');
    await confirm(page, 'start 1 agent', 'p1--helper');
    await untilRunning(daemon, ['p1--bot', 'p1--helper', 'p1--web', ...others]);
  },
);

it.runIf(hasChromium)(
  browserTest('the buttons of a section are there where a group is exactly what it lists'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    for (const name of ['shop-web', 'shop-db']) await add(daemon, { name, group: 'shop' });
    await add(daemon, { name: 'p1--api', stack: 'p1', group: 'site' });
    const page = await openBerth(daemon);
    await page.locator('.list-row[data-name=p1--api]').waitFor();
    const ofShop = ['start all of shop', 'restart all of shop', 'stop all of shop'];
    for (const [title, actions] of [
      ['shop', ofShop],
      // Both have members of the same group.
      ['p1', []],
      ['site', []],
      ['Without a group', []],
    ] as const)
      expect([title, await actionsOf(page, title)]).toEqual([title, actions]);
    await page.getByRole('searchbox').fill('shop-web');
    await eventually(async () => (await page.locator('.list-row').count()) === 1);
    expect(await actionsOf(page, 'shop')).toEqual([]);
    await page.getByRole('searchbox').fill('');
    await stop(page, 'shop');
    await untilRunning(daemon, ['my_bot', 'p1--api', 'web']);
  },
);
