// The cloud in the page: many workloads, read a page at a time; sleep and wake; a cluster that goes away.
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { afterThisTest } from '../kit/actors.ts';
import { eventually } from '../kit/daemon.ts';
import { kubeDouble, workload } from '../kit/kube_double.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { DEVICES, faults, scrollsSideways } from './page_axe.ts';
import { choose, openBerth } from './page_services.ts';
import { askCloud, cloudDaemon, giveCloudToken, openCloud } from './page_workloads.ts';

/** More than two pages; 10,000 by hand. */
const WORKLOADS = Number(process.env['BERTH_TEST_WORKLOADS'] ?? 1_100);
const NAMESPACES = 20;
const HOSTILE = '<img src=x onerror=alert(1)>';

it.runIf(hasChromium)(
  browserTest('shows thousands of workloads, what is done with them, and a cluster that goes away'),
  BROWSER_TEST,
  async () => {
    const cluster = await kubeDouble();
    afterThisTest(() => cluster.stop());
    const namespaceOf = (at: number): string => `team-${String(at % NAMESPACES).padStart(2, '0')}`;
    const nameOf = (at: number): string => `app-${String(at).padStart(5, '0')}`;
    for (let at = 0; at < WORKLOADS; at += 1) {
      cluster.put('Deployment', workload(namespaceOf(at), nameOf(at), 2));
    }
    const daemon = await cloudDaemon();
    const added = { name: HOSTILE, kubeconfig: cluster.kubeconfig };
    const { id } = await askCloud(daemon, 'POST', '/k8s/clusters', added);
    await askCloud(daemon, 'POST', `/k8s/clusters/${id}/sync`);
    const nights = { selector: { namespaces: [namespaceOf(0)] }, idle_timeout_minutes: 600 };
    await askCloud(daemon, 'PUT', '/k8s/policies/nights', nights);
    const page = await openBerth(daemon, '#/cloud');
    await giveCloudToken(page, 'wrong');
    await page.getByRole('alert').getByText('token').waitFor();
    await giveCloudToken(page);
    const row = (name: string) => page.locator(`.workload-row[data-name=${name}]`);
    await row(nameOf(0)).getByText('awake').waitFor();
    await page.getByText(`${WORKLOADS} workloads`, { exact: true }).first().waitFor();
    expect(await page.locator('.workload-row[data-name]').count()).toBeLessThan(60);
    expect(await page.locator('img').count()).toBe(0);
    // A policy says what it decides on and what it will do.
    await row(nameOf(0)).getByText('policy:nights').waitFor();
    await page.getByRole('button', { name: 'policies 1' }).click();
    await page.getByText(`decides on ${Math.ceil(WORKLOADS / NAMESPACES)} of`).waitFor();
    const heads = page.locator('.policies > .table-head');
    expect(await heads.allInnerTexts()).toEqual([expect.stringMatching(/^Policy\s+Workloads\s+Asleep/)]);
    await page.getByRole('button', { name: 'preview of nights' }).click();
    await page.locator('.preview-row[data-name]').first().getByText('policy:nights').waitFor();
    expect(await page.evaluate('location.hash')).toContain('policy=nights');
    await page.getByRole('button', { name: /^workloads/ }).click();
    const own = () => askCloud(daemon, 'GET', '/k8s/workloads?limit=1').then(([first]) => first);
    await page.getByLabel(`auto-sleep of ${namespaceOf(0)}/${nameOf(0)}`).check();
    const minutes = page.getByLabel(`minutes until ${namespaceOf(0)}/${nameOf(0)} sleeps`);
    await minutes.fill('45');
    // What is typed outlasts that the list is read: with the second answer, the first one is shown.
    for (const _ of [1, 2])
      await page.waitForResponse((response) => response.url().includes('/k8s/workloads?'));
    expect(await minutes.inputValue()).toBe('45');
    await page.keyboard.press('Enter');
    await eventually(async () => {
      const { name, auto_sleep_enabled: isOn, idle_timeout_minutes: after } = await own();
      return name === nameOf(0) && isOn && after === 45;
    }, own);
    // The palette knows them too.
    await choose(page, nameOf(1));
    await page.locator('h1', { hasText: nameOf(1) }).waitFor();
    await page.goBack();
    // The last one, which is on the last page, is in sight: what happens to it is shown.
    const last = nameOf(WORKLOADS - 1);
    await page
      .locator('.rows')
      .last()
      .evaluate((box) => {
        box.scrollTop = box.scrollHeight;
      });
    await row(last).getByRole('button', { name: 'sleep' }).click();
    await page.getByText('It serves nobody until it is woken.').waitFor();
    await page.getByRole('button', { name: 'sleep the workload' }).click();
    await row(last).getByText('sleeping').waitFor();
    cluster.change('Deployment', namespaceOf(WORKLOADS - 1), last, (object) => {
      object.status = { replicas: 0, observedGeneration: object.metadata.generation };
    });
    await row(last).getByText('asleep').waitFor();
    await page.getByRole('button', { name: '1 asleep' }).click();
    await eventually(async () => (await page.locator('.workload-row[data-name]').count()) === 1);
    await page.getByRole('searchbox', { name: 'search the workloads' }).fill(last);
    await row(last).getByRole('button', { name: 'wake' }).click();
    await row(last).getByText('wak').or(page.getByText('0 workloads')).first().waitFor();
    // What it has saved is told, even if it is next to nothing.
    await page.getByRole('button', { name: 'savings' }).click();
    await page.locator(`.savings-row[data-namespace=${namespaceOf(WORKLOADS - 1)}]`).waitFor();
    await page.getByText('Pod hours').waitFor();
    await page.getByRole('button', { name: 'events', exact: true }).click();
    await page.locator('.event-row', { hasText: 'sleepWorkload by token' }).waitFor();
    expect(await page.locator('.event-subject').first().textContent()).toContain(HOSTILE);
    // One that does not answer holds up nothing else.
    cluster.fault(() => true, { kind: 'stall' }, 1_000);
    const sync = page.getByRole('button', { name: /^sync/ });
    await sync.click();
    await page.evaluate(`location.assign('#/services')`);
    await page.getByText('registers one command as a service').waitFor();
    await page.evaluate(`location.assign('#/cloud')`);
    await page.getByText(`${WORKLOADS} workloads`, { exact: true }).first().waitFor();
    expect(await sync.isDisabled()).toBe(true);
    // One that is gone says so, and what was known of it stays.
    await cluster.stop();
    await sync.click();
    await page
      .getByRole('region', { name: /cluster/ })
      .getByText('unreachable')
      .waitFor();
    await page.locator('.cluster-reason', { hasText: 'ECONNREFUSED' }).waitFor();
    await page.getByRole('button', { name: /^workloads/ }).click();
    await page.getByText(`${WORKLOADS} workloads`, { exact: true }).first().waitFor();
  },
);

const onOneLine = (page: Page): Promise<boolean> =>
  page
    .getByRole('group', { name: 'parts of the cloud' })
    .locator('button')
    .evaluateAll((tabs) => new Set(tabs.map((tab) => tab.getBoundingClientRect().top)).size === 1);

it.runIf(hasChromium)(
  browserTest(
    'axe finds nothing in the parts of the cloud, and their tabs and rows have room beside many clusters',
  ),
  BROWSER_TEST,
  async () => {
    const cluster = await kubeDouble();
    afterThisTest(() => cluster.stop());
    for (const name of ['api', `long-${'name-'.repeat(10)}of-it`])
      cluster.put('Deployment', workload('team', name, 2));
    const daemon = await cloudDaemon();
    const added = { name: 'dev', kubeconfig: cluster.kubeconfig };
    const { id } = await askCloud(daemon, 'POST', '/k8s/clusters', added);
    await askCloud(daemon, 'POST', `/k8s/clusters/${id}/sync`);
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await askCloud(daemon, 'POST', '/k8s/clusters', { ...added, name });
    await askCloud(daemon, 'PUT', '/k8s/policies/nights', {
      selector: { namespaces: ['team'] },
      idle_timeout_minutes: 600,
    });
    const [api, other] = await askCloud(daemon, 'GET', '/k8s/workloads');
    await askCloud(daemon, 'POST', `/k8s/workloads/${api.id}/sleep`);
    await askCloud(daemon, 'POST', `/k8s/workloads/${other.id}/tether`, { container_port: 80, label: 'web' });
    const parts = {
      workloads: '.workload-row[data-name]',
      policies: '.policy-row:not(.table-head)',
      tethers: '.tether-row:not(.table-head)',
      savings: '.savings-row[data-namespace]',
      events: '.event-row',
    };
    for (const device of DEVICES) {
      const page = await openCloud(daemon, device);
      for (const [part, row] of Object.entries(parts)) {
        await page.getByRole('button', { name: new RegExp(`^${part}`) }).click();
        await page.locator(row).first().waitFor();
        // Many clusters leave room for it: it is not behind the bar below.
        await page.locator(row).first().click({ trial: true });
        const seen = [device, part, await scrollsSideways(page), await onOneLine(page), await faults(page)];
        expect(seen).toEqual([device, part, false, true, []]);
      }
      await page.context().close();
    }
  },
);
