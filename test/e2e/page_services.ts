// Daemons with services for the page to show.
import type { Page } from 'playwright-core';
import { type Daemon, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { type Device, openPage } from './browser.ts';

/** A token with characters that a fragment could garble. */
export const TOKEN = 'a+b/c=-and-more-of-it';
const headers = { authorization: `Bearer ${TOKEN}` };

/** Asks the daemon with its token; throws unless it agrees. */
export async function ask(daemon: Daemon, method: string, path: string, body?: unknown): Promise<any> {
  const answer = await daemon.request(method, path, body, headers);
  if (answer.status >= 400) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** A daemon with the token; on the port and state of an earlier one where they are given. */
export const daemonOn = (port: number, stateDir?: string): Promise<Daemon> =>
  startDaemon({ config: `port = ${port}\n[auth]\ntoken = "${TOKEN}"`, ...(stateDir ? { stateDir } : {}) });

/** Registers a service, and starts it unless it is to stay at rest. */
export async function add(daemon: Daemon, service: { name: string; [key: string]: unknown }, starts = true) {
  await ask(daemon, 'POST', '/v1/services', { port: freePort(), cmd: 'sleep 600', ...service });
  if (starts) await ask(daemon, 'POST', `/v1/services/${service.name}/start?wait=false`);
}

/** A daemon with a running and a stopped service, and an agent. */
export async function withServices(port = 0): Promise<Daemon> {
  const daemon = await daemonOn(port);
  await add(daemon, { name: 'web', group: 'site' });
  await add(daemon, { name: 'db' }, false);
  await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'my_bot', cmd: 'sleep 600' });
  return daemon;
}

/** Opens the page as `berth open` does, at `hash` after that. */
export async function openBerth(daemon: Daemon, hash = '', device: Device = {}): Promise<Page> {
  const { code } = await ask(daemon, 'POST', '/v1/page-codes');
  const page = await openPage(`http://127.0.0.1:${daemon.port}/#code=${code}`, device);
  await page.getByText('connected', { exact: true }).waitFor();
  if (hash !== '') await page.evaluate((to) => location.assign(to), hash);
  return page;
}

/** The screen of a terminal as the page has it, through its button. */
export async function shownScreen(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'copy the screen' }).click();
  return page.evaluate('navigator.clipboard.readText()');
}

/** Chooses the first command that the palette finds for `words`. */
export async function choose(page: Page, words: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.keyboard.type(words);
  const found = page.getByRole('listbox', { name: 'names and actions' }).getByRole('option');
  await found.first().waitFor();
  await page.keyboard.press('Enter');
}
