// Starts, restarts and stops on the page that take long or fail later, on the real daemon. A browser has six
// connections.
import { writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

const SLOW = ['slow1', 'slow2', 'slow3', 'slow4', 'slow5', 'slow6'];

const FIRM = ['firm1', 'firm2', 'firm3', 'firm4', 'firm5', 'firm6', 'firm7'];

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const isShown = (page: Page, name: string, state: string) =>
  page.locator(`.list-row[title="${name}: ${state}"]`).waitFor();
const pidOf = async (daemon: Daemon, name: string): Promise<number | undefined> =>
  (await ask(daemon, 'GET', `/v1/services/${name}`)).pid;

/** Waits for another process of the service than `before`. */
const hasOther = (daemon: Daemon, name: string, before: number | undefined) =>
  eventually(async () => {
    const pid = await pidOf(daemon, name);
    return pid !== undefined && pid !== before;
  });

/** Registers a service that is never ready. */
const addSlow = (daemon: Daemon, name: string, more: object = {}) =>
  add(daemon, { name, ready: `tcp://127.0.0.1:${freePort()}`, startTimeout: 600_000, ...more }, false);

/** Starts a service that ignores its stop signal for longer than the test. */
async function addFirm(daemon: Daemon, name: string, more: object = {}): Promise<void> {
  const cmd = `trap '' TERM; echo firm; while :; do sleep 0.5; done`;
  await add(daemon, { name, cmd, port: null, ready: { log: 'firm' }, stopGrace: 100_000, ...more });
  await eventually(async () => (await ask(daemon, 'GET', `/v1/services/${name}`)).status === 'running');
}

it.runIf(hasChromium)(
  browserTest('many starts, restarts and stops that take long leave connections for everything else'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    for (const name of SLOW) await addSlow(daemon, name);
    for (const name of FIRM) await addFirm(daemon, name);
    const page = await openBerth(daemon, '#/services');
    for (const name of SLOW) await press(page, `start ${name}`);
    for (const name of SLOW) await isShown(page, name, 'starting');
    const before = new Map<string, number | undefined>();
    for (const name of SLOW) before.set(name, await pidOf(daemon, name));
    for (const name of SLOW) await press(page, `restart ${name}`);
    for (const name of FIRM.slice(0, 4)) await press(page, `restart ${name}`);
    for (const name of FIRM.slice(4)) await press(page, `stop ${name}`);
    for (const name of FIRM) await isShown(page, name, 'stopping');
    for (const name of SLOW) await hasOther(daemon, name, before.get(name));
    // A read, a start and a stop get through.
    expect(await page.evaluate(`fetch('/livez').then(({ ok }) => ok)`)).toBe(true);
    await press(page, 'start db');
    await isShown(page, 'db', 'running');
    await press(page, 'stop slow4');
    await isShown(page, 'slow4', 'stopped');
    expect(await page.locator('.notice').count()).toBe(0);
    for (const name of FIRM) await ask(daemon, 'POST', `/v1/services/${name}/stop?grace=0`);
  },
);

it.runIf(hasChromium)(
  browserTest('a stop of a group counts for its services that were to restart before'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const group = 'firm';
    for (const name of FIRM) await addFirm(daemon, name, { group });
    const page = await openBerth(daemon, '#/services');
    for (const name of FIRM) await press(page, `restart ${name}`);
    await page.locator('.section-head', { hasText: group }).hover();
    await press(page, `stop all of ${group}`);
    for (const name of FIRM) await isShown(page, name, 'stopping');
    for (const name of FIRM) await ask(daemon, 'POST', `/v1/services/${name}/stop?grace=0`);
    for (const name of FIRM) await isShown(page, name, 'stopped');
    // What the page would have requested by now is answered.
    await press(page, 'start db');
    await isShown(page, 'db', 'running');
    const started = `/v1/events/history?types=service.started&names=${FIRM.join()}`;
    expect((await ask(daemon, 'GET', started)).events).toHaveLength(FIRM.length);
    expect(await page.locator('.notice').count()).toBe(0);
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
    // So is a restart that fails, though the end of the process of before is none.
    await add(daemon, { name: 'again', cwd, cmd: 'test ! -e broken || exit 3; sleep 600' });
    await isShown(page, 'again', 'running');
    const before = await pidOf(daemon, 'again');
    await press(page, 'restart again');
    await hasOther(daemon, 'again', before);
    await isShown(page, 'again', 'running');
    await writeFile(`${cwd}/broken`, '');
    await press(page, 'restart again');
    await message('restart again: start failed', 'before it was ready');
    // A stop on the page is no failure.
    await addSlow(daemon, 'stopped');
    await press(page, 'start stopped');
    await isShown(page, 'stopped', 'starting');
    const started = await pidOf(daemon, 'stopped');
    await press(page, 'restart stopped');
    await hasOther(daemon, 'stopped', started);
    await press(page, 'stop stopped');
    await isShown(page, 'stopped', 'stopped');
    await press(page, 'start more');
    await message('start more: start failed', 'nothing done');
    expect(await page.locator('.notice strong').allTextContents()).toEqual(
      ['late', 'work', 'again', 'more'].map(
        (name) => `${name === 'again' ? 'restart' : 'start'} ${name}: start failed`,
      ),
    );
  },
);
