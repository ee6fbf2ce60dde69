// The page at `/` in a real browser, on the real daemon.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { freePort } from '../ports.ts';
import { type Daemon, eventually, newFolder, startDaemon } from './daemon.ts';

const hasChromium = spawnSync('chromium', ['--version']).error === undefined;
const name = (what: string): string => (hasChromium ? what : `${what} (skipped: chromium is not installed)`);

const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...['--virtual-time-budget=4000', '--dump-dom'],
];

/** The page as it stands after its first requests. */
async function dump(url: string): Promise<string> {
  const browser = spawn('chromium', [...FLAGS, `--user-data-dir=${newFolder()}`, url]);
  let text = '';
  browser.stdout.on('data', (part) => {
    text += part;
  });
  await once(browser, 'close');
  return text;
}

/** Opens the page until it `shows` that. */
const seen = (url: string, shows: string): Promise<string> =>
  eventually(async () => {
    const text = await dump(url);
    return text.includes(shows) && text;
  });

const TOKEN = 'a+b/c=';

async function withServices(): Promise<Daemon> {
  const daemon = await startDaemon({ config: `[auth]\ntoken = "${TOKEN}"` });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const register = (service: object) =>
    daemon.request('POST', '/v1/services', { port: freePort(), cmd: 'sleep 600', ...service }, headers);
  expect((await register({ name: 'web', group: 'site' })).status).toBe(201);
  expect((await register({ name: 'db' })).status).toBe(201);
  expect((await daemon.request('POST', '/v1/services/web/start', undefined, headers)).status).toBe(200);
  const agent = { name: 'my_bot', cmd: 'sleep 600' };
  expect((await daemon.request('POST', '/v1/agents/spinup', agent, headers)).status).toBe(201);
  return daemon;
}

it.runIf(hasChromium)(
  name('shows services by group, agents at their gateway, and the last events'),
  async () => {
    const daemon = await withServices();
    const page = await seen(`http://127.0.0.1:${daemon.port}/#token=${TOKEN}`, 'web started at');
    expect(page).toContain('<th scope="row">web</th><td data-status="running">running</td>');
    expect(page).toContain('<th scope="row">db</th><td data-status="stopped">stopped</td>');
    const groups = [...page.matchAll(/<th scope="rowgroup" colspan="6">([^<]*)</g)].map(([, group]) => group);
    expect(groups).toEqual(['No group', 'Agents', 'site']);
    expect(page).toMatch(/<a [^>]*href="http:\/\/my-bot\.agents\.localhost:\d+\/"/);
    expect(page).toMatch(/<button [^>]*aria-label="start web" aria-disabled="true"/);
    expect(page).toMatch(/<p id="connection" role="status">connected</);
    expect(page).toMatch(/<form id="login" hidden/);
  },
);

it.runIf(hasChromium)(name('asks for a token that is missing or wrong'), async () => {
  const daemon = await withServices();
  const missing = await seen(`http://127.0.0.1:${daemon.port}/`, '<form id="login">');
  expect(missing).not.toContain('web');
  expect(missing).not.toContain('The token is wrong');
  await seen(`http://127.0.0.1:${daemon.port}/#token=no`, 'The token is wrong.');
});
