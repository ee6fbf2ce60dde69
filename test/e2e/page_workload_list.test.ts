// The workloads in the list at the left: by namespace, searched, selected by keys, live, and read by nobody
// who does not look.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { BROWSER_TEST, browserTest, hasChromium, setHidden } from './browser.ts';
import { DEVICES, faults, scrollsSideways } from './page_axe.ts';
import { add, choose, openBerth } from './page_services.ts';
import { addCluster, askCloud, cloudDaemon, giveCloudToken, idOf, openCloud } from './page_workloads.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

const head = (page: Page) => page.locator('.list .section-head', { hasText: 'Workloads' });
const namespaceRow = (page: Page, name: string) => page.locator(`.namespace-row[data-namespace=${name}]`);
const item = (page: Page, name: string) => page.locator(`.workload-item[data-name=${name}]`);
const goTo = (page: Page, hash: string) => page.evaluate(`location.assign('${hash}')`);

/** `count` paths in as many namespaces as given. */
const pathsOf = (count: number, namespaces: number): string[] =>
  Array.from({ length: count }, (_, at) => {
    const namespace = `team-${String(at % namespaces).padStart(2, '0')}`;
    return `${namespace}/app-${String(at).padStart(5, '0')}`;
  });

/** The requests of the page whose path begins with `prefix`. */
function requestsOf(page: Page, prefix: string): string[] {
  const paths: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith(prefix)) paths.push(pathname);
  });
  return paths;
}

it.runIf(hasChromium)(
  browserTest('the list has workloads once the cloud has a cluster, searched and selected as services are'),
  BROWSER_TEST,
  async () => {
    const daemon = await cloudDaemon();
    await add(daemon, { name: 'web' });
    const page = await openBerth(daemon);
    await page.locator('.list-row[data-name=web]').waitFor();
    expect(await head(page).count()).toBe(0);
    await goTo(page, '#/cloud');
    await giveCloudToken(page);
    await page.getByText('No cluster.').waitFor();
    expect(await head(page).count()).toBe(0);
    const cluster = await addCluster(daemon, 'dev', ['shop/cart', 'shop/web', 'tools/mail']);
    await head(page).getByText('3/3').waitFor();
    await goTo(page, '#/services/web');
    // A few are shown at once. Keys go on from the services.
    await item(page, 'mail').getByText('2/2').waitFor();
    expect(await item(page, 'mail').locator('.hidden-text').textContent()).toBe('awake');
    await page.locator('h1', { hasText: 'web' }).waitFor();
    await page.keyboard.press('j');
    await page.locator('h1', { hasText: 'cart' }).waitFor();
    await page.keyboard.press('x');
    await page.getByRole('button', { name: 'sleep the workload shop/cart' }).click();
    await page.locator('.view-head .state', { hasText: 'sleeping' }).waitFor();
    cluster.change('Deployment', 'shop', 'cart', (object) => {
      object.status = { replicas: 0, observedGeneration: object.metadata.generation };
    });
    await item(page, 'cart').getByText('asleep').waitFor();
    await page.locator('.event-row', { hasText: 'sleepWorkload by token' }).waitFor();
    await head(page).getByText('2/3').waitFor();
    await page.keyboard.press('s');
    await page.locator('.view-head .state', { hasText: /waking|awake/ }).waitFor();
    await page.keyboard.press('j');
    await page.locator('h1', { hasText: 'web' }).waitFor();
    expect(await page.locator('.list-row[aria-current=page]').getAttribute('title')).toMatch(/^shop\/web: /);
    // Space marks services alone: not the one of the same name.
    await item(page, 'web').focus();
    await page.keyboard.press('Space');
    await page.locator('a.list-row:not(.workload-item)[data-name=web]').focus();
    await page.keyboard.press('Space');
    await page.getByRole('toolbar', { name: 'marked services' }).getByText('1 marked').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('k');
    await page.keyboard.press('k');
    await eventually(async () => (await page.evaluate('location.hash')) === '#/services/web');
    // The search is that of the services. A closed namespace stays closed, but not for a search.
    await namespaceRow(page, 'shop').click();
    await eventually(async () => (await item(page, 'cart').count()) === 0);
    await page.keyboard.press('/');
    await page.keyboard.type('web');
    await eventually(async () => (await page.locator('.list a.list-row').count()) === 2);
    expect(await namespaceRow(page, 'tools').count()).toBe(0);
    await head(page).getByText('1/1').waitFor();
    await page.getByRole('searchbox').first().fill('dev mail');
    await eventually(async () => (await page.locator('.list a.list-row').count()) === 1);
    await item(page, 'mail').click();
    await page.locator('h1', { hasText: 'mail' }).waitFor();
    expect(await page.evaluate('location.hash')).toMatch(/^#\/cloud\/\w+\?find=dev\+mail$/);
    await page.getByRole('searchbox').first().fill('nothing has this');
    await page.getByText('Nothing has these words.').waitFor();
    await page.getByRole('searchbox').first().fill('');
    await namespaceRow(page, 'shop').waitFor();
    expect(await namespaceRow(page, 'shop').getAttribute('aria-expanded')).toBe('false');
    // A workload found elsewhere opens its namespace.
    await page.keyboard.press('Escape');
    await choose(page, 'shop/cart');
    await page.locator('.workload-item[aria-current=page][data-name=cart]').waitFor();
    // The address has the workload, for a tab that does not know the cloud token yet.
    await page.reload();
    await giveCloudToken(page);
    await page.locator('h1', { hasText: 'cart' }).waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('of many workloads the list shows namespaces with counts, kept current by events alone'),
  BROWSER_TEST,
  async () => {
    const daemon = await cloudDaemon(freePort());
    const cluster = await addCluster(daemon, HOSTILE, [...pathsOf(1_099, 20), 'team-00/away']);
    await addCluster(daemon, 'other', ['team-00/away']);
    const page = await openCloud(daemon);
    await head(page).getByText('1101/1101', { exact: true }).waitFor();
    await goTo(page, '#/services');
    expect(await page.locator('.workload-item').count()).toBe(0);
    expect(await namespaceRow(page, 'team-00').first().textContent()).toBe(`team-00${HOSTILE}56/56`);
    expect(await page.locator('img').count()).toBe(0);
    // Without the lists, events tell.
    await page.route('**/k8s/workloads?*', (route) => route.abort());
    const id = await idOf(daemon, 'app-00007');
    await askCloud(daemon, 'POST', `/k8s/workloads/${id}/sleep`);
    await namespaceRow(page, 'team-07').getByText('54/55').waitFor();
    await head(page).getByText('1100/1101').waitFor();
    await namespaceRow(page, 'team-07').focus();
    await page.keyboard.press('Enter');
    await item(page, 'app-00007').getByText('sleeping').waitFor();
    expect(await page.locator('.list-row').count()).toBeLessThan(60);
    // With the lists, the replicas in sight follow the events.
    await page.unroute('**/k8s/workloads?*');
    cluster.change('Deployment', 'team-07', 'app-00027', (object) => {
      object.spec.replicas = 3;
      object.status = { ...object.status, replicas: 3, observedGeneration: object.metadata.generation };
    });
    await item(page, 'app-00027').getByText('2/3').waitFor();
    await namespaceRow(page, 'team-07').click();
    await eventually(async () => (await item(page, 'app-00007').count()) === 0);
    // The palette tells apart what has the same name in two clusters.
    await page.keyboard.press('Control+k');
    await page.keyboard.type('team-00/away');
    const found = page.getByRole('option', { name: /^team-00\/away/ });
    await eventually(async () => (await found.count()) === 2);
    expect(await found.allTextContents()).toEqual([
      `team-00/awayDeployment in ${HOSTILE}, awake`,
      'team-00/awayDeployment in other, awake',
    ]);
    await page.keyboard.press('Escape');
    // What happens while the daemon is away is shown when it is back.
    const { port, stateDir } = daemon;
    daemon.signal('SIGTERM');
    await daemon.exited;
    await page.getByText('reconnecting', { exact: true }).waitFor();
    for (const name of ['app-00007', 'app-00047'])
      cluster.change('Deployment', 'team-07', name, (object) => {
        object.spec.replicas = 0;
        object.status = { replicas: 0, observedGeneration: object.metadata.generation };
      });
    await cloudDaemon(port, stateDir);
    await namespaceRow(page, 'team-07').getByText('53/55').waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('a hidden tab asks the cloud for nothing, and one that is seen again catches up'),
  BROWSER_TEST,
  async () => {
    const daemon = await cloudDaemon();
    const cluster = await addCluster(daemon, 'dev', ['shop/cart']);
    const page = await openCloud(daemon);
    await item(page, 'cart').getByText('2/2').waitFor();
    await goTo(page, '#/services');
    const asked = requestsOf(page, '/k8s/');
    await page.clock.install();
    // Lets the timers of two minutes fire. What they ask for is known once a later request is answered.
    const passTwoMinutes = async (): Promise<void> => {
      await page.clock.fastForward(120_000);
      await page.evaluate("fetch('/livez').then(({ ok }) => ok)");
    };
    // The pause under way at the installation ends by the real clock, the next one by the page's.
    await eventually(() => asked.length > 0);
    asked.length = 0;
    await eventually(async () => {
      await passTwoMinutes();
      return asked.length > 0;
    });
    await setHidden(page, true);
    // What was under way has ended.
    await eventually(async () => {
      const before = asked.length;
      await passTwoMinutes();
      await passTwoMinutes();
      return asked.length === before;
    });
    asked.length = 0;
    await passTwoMinutes();
    cluster.change('Deployment', 'shop', 'cart', (object) => {
      object.spec.replicas = 0;
      object.status = { replicas: 0, observedGeneration: object.metadata.generation };
    });
    await eventually(async () => (await askCloud(daemon, 'GET', '/k8s/workloads'))[0].state === 'asleep');
    await passTwoMinutes();
    expect(asked).toEqual([]);
    await page.clock.resume();
    await setHidden(page, false);
    await item(page, 'cart').getByText('asleep').waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('many logs and the states of workloads leave the browser connections for requests'),
  BROWSER_TEST,
  async () => {
    const daemon = await cloudDaemon();
    for (const name of ['web', 'db']) await add(daemon, { name, cmd: 'echo hello; sleep 600' });
    const cluster = await addCluster(daemon, 'dev', ['shop/cart']);
    const page = await openCloud(daemon);
    await item(page, 'cart').getByText('2/2').waitFor();
    const ends = page.waitForEvent('requestfailed', (request) => request.url().includes('/k8s/events'));
    await goTo(page, '#/logs?panes=log.web~log.db');
    await ends;
    await eventually(async () => (await page.locator('.log-text', { hasText: 'hello' }).count()) === 4);
    // What happens meanwhile is shown when there is a connection for the stream again.
    cluster.change('Deployment', 'shop', 'cart', (object) => {
      object.spec.replicas = 0;
      object.status = { replicas: 0, observedGeneration: object.metadata.generation };
    });
    const begins = page.waitForRequest((request) => request.url().includes('/k8s/events'));
    await goTo(page, '#/services');
    await begins;
    await item(page, 'cart').getByText('asleep').waitFor();
  },
);

it.runIf(hasChromium)(
  browserTest('a token that is revoked leaves nothing of what it has shown to the next one'),
  BROWSER_TEST,
  async () => {
    const daemon = await cloudDaemon();
    await addCluster(daemon, 'dev', ['shop/cart', 'tools/mail']);
    const tokenFor = async (namespace: string): Promise<string> => {
      const { token } = await askCloud(daemon, 'POST', '/k8s/tokens', { name: namespace });
      const [{ id }] = await askCloud(daemon, 'GET', '/k8s/clusters');
      const grant = { token: namespace, role: 'viewer', cluster_id: id, namespace };
      await askCloud(daemon, 'POST', '/k8s/grants', grant);
      return token;
    };
    const [first, second] = [await tokenFor('shop'), await tokenFor('tools')];
    const page = await openBerth(daemon, '#/cloud');
    await giveCloudToken(page, first);
    await item(page, 'cart').getByText('2/2').waitFor();
    expect(await item(page, 'mail').count()).toBe(0);
    // Without its lists, the page has only what it has read.
    await page.route('**/k8s/workloads?*', (route) => route.abort());
    await askCloud(daemon, 'DELETE', '/k8s/tokens/shop');
    await page.getByLabel('cloud token').waitFor();
    expect(await head(page).count()).toBe(0);
    await giveCloudToken(page, second);
    await head(page).getByText('0/0').waitFor();
    await page.unroute('**/k8s/workloads?*');
    await item(page, 'mail').getByText('2/2').waitFor();
    expect(await item(page, 'cart').count()).toBe(0);
  },
);

it.runIf(hasChromium)(
  browserTest('axe finds nothing in the list with workloads and in the view of one, and nothing is too wide'),
  BROWSER_TEST,
  async () => {
    const daemon = await cloudDaemon();
    await addCluster(daemon, 'dev', [...pathsOf(300, 12), `team-00/long-${'name-'.repeat(8)}of-it`]);
    await addCluster(daemon, `other-${'name-'.repeat(8)}of-it`, pathsOf(20, 2));
    const id = await idOf(daemon, 'app-00012');
    await askCloud(daemon, 'POST', `/k8s/workloads/${id}/sleep`);
    await askCloud(daemon, 'POST', `/k8s/workloads/${id}/tether`, { container_port: 80, label: 'web' });
    for (const device of DEVICES) {
      const page = await openCloud(daemon, device);
      await page.getByText('321 workloads', { exact: true }).waitFor();
      await goTo(page, '#/services');
      await namespaceRow(page, 'team-00').first().click();
      await item(page, 'app-00012').first().getByText('sleeping').waitFor();
      expect([device, await scrollsSideways(page), await faults(page)]).toEqual([device, false, []]);
      await item(page, 'app-00012').first().click();
      await page.locator('.event-row', { hasText: 'sleepWorkload by token' }).waitFor();
      await page.locator('.card', { hasText: 'Tethers' }).getByText('web').waitFor();
      expect([device, await scrollsSideways(page), await faults(page)]).toEqual([device, false, []]);
      await page.context().close();
    }
  },
);
