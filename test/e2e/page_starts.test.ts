// Starts and restarts on the page that take long or fail later, on the real daemon. A browser has six connections.
import { writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

const SLOW = ['slow1', 'slow2', 'slow3', 'slow4', 'slow5', 'slow6'];

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const isShown = (page: Page, name: string, state: string) =>
  page.locator(`.list-row[title="${name}: ${state}"]`).waitFor();
const pidOf = async (daemon: Daemon, name: string): Promise<number | undefined> =>
  (await ask(daemon, 'GET', `/v1/services/${name}`)).pid;

/** Registers a service that is never ready. */
const addSlow = (daemon: Daemon, name: string, more: object = {}) =>
  add(daemon, { name, ready: `tcp://127.0.0.1:${freePort()}`, startTimeout: 600_000, ...more }, false);

it.runIf(hasChromium)(
  browserTest('many starts and restarts that take long leave connections for everything else'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    for (const name of SLOW) await addSlow(daemon, name);
    const page = await openBerth(daemon, '#/services');
    for (const name of SLOW) await press(page, `start ${name}`);
    for (const name of SLOW) await isShown(page, name, 'starting');
    await press(page, 'stop slow6');
    await isShown(page, 'slow6', 'stopped');
    const before = new Map<string, number | undefined>();
    for (const name of SLOW) before.set(name, await pidOf(daemon, name));
    for (const name of SLOW.slice(0, 5)) await press(page, `restart ${name}`);
    const hasBegun = (name: string) =>
      eventually(async () => {
        const pid = await pidOf(daemon, name);
        return pid !== undefined && pid !== before.get(name);
      });
    await hasBegun('slow1');
    await hasBegun('slow2');
    // The page reads on, and a stop gets through. It also counts for a restart that has not begun.
    expect(await page.evaluate(`fetch('/livez').then(({ ok }) => ok)`)).toBe(true);
    await press(page, 'stop slow4');
    await isShown(page, 'slow4', 'stopped');
    expect(await pidOf(daemon, 'slow3')).toBe(before.get('slow3'));
    // The end of one makes room for the others.
    await press(page, 'stop slow1');
    await isShown(page, 'slow1', 'stopped');
    await hasBegun('slow3');
    await press(page, 'stop slow2');
    await hasBegun('slow5');
    await isShown(page, 'slow4', 'stopped');
  },
);

it.runIf(hasChromium)(
  browserTest('a start that fails after its request is reported, an end after the start is not'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const cwd = daemon.stateDir;
    await addSlow(daemon, 'crashing', { cwd, cmd: 'mkfifo go; echo no database; read line < go; exit 3' });
    await addSlow(daemon, 'late', { cmd: 'echo still loading; sleep 600', startTimeout: 100 });
    await add(daemon, { name: 'ending', cwd, cmd: 'mkfifo end; read line < end; exit 5' }, false);
    const task = { port: null, kind: 'task' };
    await add(daemon, { name: 'work', cmd: 'echo half done; exit 4', ...task }, false);
    await add(daemon, { name: 'more', cmd: 'echo nothing done; exit 4', ...task }, false);
    const page = await openBerth(daemon, '#/services');
    const message = (text: string, line: string) =>
      page.locator('.notice', { hasText: text }).getByText(line).waitFor();
    await press(page, 'start ending');
    await isShown(page, 'ending', 'running');
    await writeFile(`${cwd}/end`, '\n');
    await isShown(page, 'ending', 'crashed');
    await press(page, 'start crashing');
    await isShown(page, 'crashing', 'starting');
    await writeFile(`${cwd}/go`, '\n');
    await message('start crashing: start failed', 'no database');
    await press(page, 'start late');
    await message('start late: start failed', 'before it was ready');
    await message('start late: start failed', 'still loading');
    await press(page, 'start work');
    await message('start work: start failed', 'half done');
    // A stop on the page is no failure.
    await addSlow(daemon, 'stopped');
    await press(page, 'start stopped');
    await isShown(page, 'stopped', 'starting');
    await press(page, 'stop stopped');
    await isShown(page, 'stopped', 'stopped');
    await press(page, 'start more');
    await message('start more: start failed', 'nothing done');
    expect(await page.locator('.notice strong').allTextContents()).toEqual(
      ['crashing', 'late', 'work', 'more'].map((name) => `start ${name}: start failed`),
    );
  },
);
