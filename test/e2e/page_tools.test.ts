// What the page does with many at once, and the small tools beside its lists, on the real daemon.
import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { add, ask, openBerth, withServices } from './page_services.ts';

it.runIf(hasChromium)(
  browserTest('what the table shows is stopped at once after a question, agents are left alone'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'api', group: 'site' });
    const page = await openBerth(daemon);
    const state = (name: string, word: string) =>
      page.locator(`.table-row[data-name=${name}] .state`, { hasText: word }).waitFor();
    await Promise.all([state('web', 'running'), state('api', 'running')]);
    const agent = (): Promise<any> => ask(daemon, 'GET', '/v1/services/my_bot');
    const { pid } = await agent();
    await page.getByRole('button', { name: 'stop 2 shown services' }).click();
    await page.getByRole('dialog').getByText('api, web').waitFor();
    await page.getByRole('button', { name: 'cancel' }).click();
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.getByRole('button', { name: 'stop 2 shown services' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'stop 2 services' }).click();
    await Promise.all([state('web', 'stopped'), state('api', 'stopped')]);
    expect(await agent()).toMatchObject({ status: 'running', pid });
    // Only what the search leaves.
    await page.getByRole('searchbox').fill('site');
    await page.getByRole('button', { name: 'start 2 shown services' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'start 2 services' }).click();
    await Promise.all([state('web', 'running'), state('api', 'running')]);
  },
);

it.runIf(hasChromium)(
  browserTest('the hooks of a stack are left out of what starts many, and have no start of their own'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const inStack = { stack: 'shop', port: null };
    await add(daemon, { name: 'shop--api', group: 'shop', ...inStack }, false);
    for (const hook of ['hook-create', 'hook-remove'])
      await add(daemon, { name: `shop--${hook}`, kind: 'task', ...inStack }, false);
    const page = await openBerth(daemon);
    await page.locator('.table-row[data-name=shop--hook-remove]').waitFor();
    await page.getByRole('searchbox').fill('shop');
    await page.getByRole('button', { name: 'start 1 shown service' }).click();
    await page.getByRole('dialog').getByText('shop--api', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'cancel' }).click();
    for (const [action, isOn] of [
      ['start shop--hook-remove', false],
      ['restart shop--hook-remove', false],
      ['stop shop--hook-remove', true],
      ['start all of shop', true],
    ] as const)
      expect(await page.getByRole('button', { name: action, exact: true }).isEnabled(), action).toBe(isOn);
    await page.getByRole('button', { name: 'mark services' }).click();
    await page.getByRole('checkbox', { name: 'mark shop--api' }).waitFor();
    expect(await page.getByRole('checkbox', { name: /hook/ }).count()).toBe(0);
  },
);

it.runIf(hasChromium)(
  browserTest('the palette begins with views and what needs a person; agents are shown by state'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    await add(daemon, { name: 'zz-broken', cmd: 'exit 3' });
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'asker', cmd: 'sleep 600' });
    await ask(daemon, 'POST', '/v1/agents/asker/state', { state: 'blocked', message: 'May I?' });
    const page = await openBerth(daemon, '#/agents');
    await page.getByRole('button', { name: '1 blocked' }).click();
    await eventually(async () => (await page.locator('.agent-card').count()) === 1);
    expect(await page.evaluate('location.hash')).toBe('#/agents?state=blocked');
    await page.locator('.card-question', { hasText: 'May I?' }).waitFor();
    await page.locator('.list-row[data-name=zz-broken]', { hasText: 'exit 3' }).waitFor();
    await page.keyboard.press('Control+k');
    const titles = await page.getByRole('option').allTextContents();
    expect(titles.slice(0, 7)).toEqual([
      'servicesview',
      'agentsview',
      'logsview',
      'eventsview',
      'cloudview',
      'askeragent, blocked',
      'zz-brokenservice, crashed',
    ]);
  },
);

it.runIf(hasChromium)(
  browserTest('a log is cleared, events are marked on the charts, a phone restarts a whole group'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const { stateDir } = daemon;
    const cmd = 'echo before; mkfifo wire; while read line; do echo "$line"; done < wire; exit 4';
    await add(daemon, { name: 'chatty', group: 'talk', cmd, cwd: stateDir });
    const page = await openBerth(daemon, '#/services/chatty');
    await page.locator('.log-text', { hasText: 'before' }).waitFor();
    await page.getByRole('button', { name: /^clear/ }).click();
    await eventually(async () => (await page.locator('.log-line').count()) === 0);
    await writeFile(`${stateDir}/wire`, 'after\n');
    await page.locator('.log-text', { hasText: 'after' }).waitFor();
    await page.locator('.log-run', { hasText: 'exit 4' }).waitFor();
    expect(await page.locator('.log-text').allTextContents()).toEqual(['after']);
    // Its start and its crash.
    await page.locator('.chart[data-marks="2"]').nth(1).waitFor();
    await page.context().close();
    const phone = await openBerth(daemon, '', { isPhone: true });
    const { pid: before } = await ask(daemon, 'GET', '/v1/services/web');
    await phone.getByRole('button', { name: 'restart all of site' }).tap();
    await eventually(async () => {
      const { pid, status } = await ask(daemon, 'GET', '/v1/services/web');
      return status === 'running' && pid !== before;
    });
  },
);

it.runIf(hasChromium)(
  browserTest('an agent is linked while something listens; variables are named; removing asks first'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const { stateDir } = daemon;
    const cmd = 'mkfifo go; read line < go; exec python3 -m http.server $PORT --bind 127.0.0.1';
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'server', cmd, cwd: stateDir });
    await add(daemon, { name: 'secretive', env: { API_KEY: 'of-nobody' } });
    const page = await openBerth(daemon, '#/agents/server');
    const address = page.locator('.view-head .address', { hasText: 'server.agents.localhost' });
    await address.waitFor();
    expect(await address.getAttribute('href')).toBeNull();
    await writeFile(`${stateDir}/go`, '\n');
    await page.locator('.view-head a.address').waitFor();
    await page.getByRole('button', { name: 'remove server' }).click();
    await page.getByRole('button', { name: 'remove the agent server' }).click();
    await page.locator('h1', { hasText: 'Agents' }).waitFor();
    await eventually(async () => (await page.locator('.agent-card').count()) === 1);
    await page.evaluate(`location.assign('#/services/secretive')`);
    await page.locator('.facts', { hasText: 'API_KEY' }).waitFor();
    expect(await page.content()).not.toContain('of-nobody');
    const remove = page.getByRole('button', { name: 'remove secretive' });
    await remove.click();
    await page.getByRole('button', { name: 'cancel' }).click();
    await page.locator('h1', { hasText: 'secretive' }).waitFor();
    await remove.click();
    await page.getByRole('button', { name: 'remove the service secretive' }).click();
    await page.locator('h1', { hasText: 'Services' }).waitFor();
    await eventually(async () => (await page.locator('[data-name=secretive]').count()) === 0);
    expect(await page.locator('.pane').count()).toBe(0);
  },
);

it.runIf(hasChromium)(
  browserTest('on a phone, search fields end within the margin, and who types in a terminal can be read'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const page = await openBerth(daemon, '#/agents/my_bot', { isPhone: true });
    // Its width is that of its longest choice, and the field beside it takes the rest.
    const [mode, find] = await Promise.all(
      ['who types', 'find in the terminal of my_bot'].map((name) => page.getByLabel(name).boundingBox()),
    );
    expect([mode?.y, (mode?.width ?? 0) > 150, (find?.width ?? 0) > 60]).toEqual([find?.y, true, true]);
    // Texts begin where the title begins, and events are told in whole.
    await page.evaluate(`location.assign('#/services/web')`);
    await page.locator('.why p').waitFor();
    const lefts = await Promise.all(['h1', '.why'].map((one) => page.locator(one).boundingBox()));
    expect(lefts[0]?.x).toBe(lefts[1]?.x);
    await page.evaluate(`location.assign('#/events')`);
    await page.locator('.event-text', { hasText: 'started at http' }).first().waitFor();
    const isWhole = (texts: Element[]) => texts.every((one) => one.scrollWidth <= one.clientWidth);
    expect(await page.locator('.event-text').evaluateAll(isWhole)).toBe(true);
    for (const view of ['logs', 'events']) {
      await page.evaluate((hash) => location.assign(hash), `#/${view}`);
      const field = await page.locator('.tools > .field[type=search]').boundingBox();
      const left = field?.x ?? 0;
      expect([view, left + (field?.width ?? 0)]).toEqual([view, 390 - left]);
    }
  },
);
