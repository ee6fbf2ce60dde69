// The page at `/` in a real browser, on the real daemon.
import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { exchangeKey, pageServer } from '../kit/page_session.ts';
import { type BrowserPage, hasChromium, openPage } from './browser.ts';

const name = (what: string): string => (hasChromium ? what : `${what} (skipped: chromium is not installed)`);

const TOKEN = 'a+b/c=-and-more-of-it';
const headers = { authorization: `Bearer ${TOKEN}` };

const daemonOn = (port: number, stateDir?: string): Promise<Daemon> =>
  startDaemon({ config: `port = ${port}\n[auth]\ntoken = "${TOKEN}"`, ...(stateDir ? { stateDir } : {}) });

async function withServices(port = 0): Promise<Daemon> {
  const daemon = await daemonOn(port);
  const register = (service: object) =>
    daemon.request('POST', '/v1/services', { port: freePort(), cmd: 'sleep 600', ...service }, headers);
  expect((await register({ name: 'web', group: 'site' })).status).toBe(201);
  expect((await register({ name: 'db' })).status).toBe(201);
  expect((await daemon.request('POST', '/v1/services/web/start', undefined, headers)).status).toBe(200);
  const agent = { name: 'my_bot', cmd: 'sleep 600' };
  expect((await daemon.request('POST', '/v1/agents/spinup', agent, headers)).status).toBe(201);
  return daemon;
}

/** Opens the page as `berth open` does. */
async function open(daemon: Daemon): Promise<BrowserPage> {
  const { body } = await daemon.request('POST', '/v1/page-codes', undefined, headers);
  return openPage(`http://127.0.0.1:${daemon.port}/#code=${body.code}`);
}

const html = (page: BrowserPage): Promise<string> => page.evaluate('document.documentElement.outerHTML');
/** An expression for the text of the element that `selector` finds. */
const text = (selector: string): string => `document.querySelector('${selector}').textContent`;

it.runIf(hasChromium)(
  name('shows services by group, agents at their gateway, and the last events'),
  async () => {
    const page = await open(await withServices());
    await page.until(`${text('#events')}.includes('web started at')`);
    const shown = await html(page);
    const row = (service: string, status: string): string =>
      `<th scope="row"><a href="#log=${service}">${service}</a></th><td data-status="${status}">${status}</td>`;
    expect(shown).toContain(row('web', 'running'));
    expect(shown).toContain(row('db', 'stopped'));
    const groups = [...shown.matchAll(/<th scope="rowgroup" colspan="6">([^<]*)</g)].map(
      ([, group]) => group,
    );
    expect(groups).toEqual(['No group', 'Agents', 'site']);
    expect(shown).toMatch(/<a [^>]*href="http:\/\/my-bot\.agents\.localhost:\d+\/"/);
    expect(shown).toMatch(/<button [^>]*aria-label="start web" aria-disabled="true"/);
    expect(shown).toMatch(/<p id="connection" role="status">connected</);
    expect(shown).toMatch(/<form id="login" hidden/);
    expect(shown).toMatch(/<section id="log" [^>]*hidden/);
    expect(await page.evaluate('location.hash')).toBe('');
  },
);

it.runIf(hasChromium)(name('asks for a token that is missing or wrong'), async () => {
  const daemon = await withServices();
  const page = await openPage(`http://127.0.0.1:${daemon.port}/`);
  await page.until(`!document.getElementById('login').hidden`);
  await page.until(`${text('#notice')}.includes('berth open')`);
  expect(await html(page)).not.toContain('web');
  const submit = async (token: string): Promise<void> => {
    await page.evaluate(`document.getElementById('token').value = ${JSON.stringify(token)}`);
    await page.evaluate(`document.querySelector('#login button').click()`);
  };
  await submit('wrong');
  await page.until(`${text('#notice')}.includes('does not know the token')`);
  await submit(TOKEN);
  await page.until(`document.getElementById('login').hidden && ${text('#connection')} === 'connected'`);
});

it.runIf(hasChromium)(
  name('takes a code once, keeps its session over a reload, and the token nowhere'),
  async () => {
    const daemon = await withServices(freePort());
    const page = await open(daemon);
    const isConnected = `document.querySelector('#connection')?.textContent === 'connected'`;
    await page.until(isConnected);
    const kept = `JSON.stringify([location.href, { ...sessionStorage }, { ...localStorage }, document.cookie])`;
    expect(await page.evaluate(kept)).not.toContain(TOKEN);
    expect(await page.evaluate('location.hash')).toBe('');
    await page.evaluate('setTimeout(() => location.reload()); globalThis.isOld = true');
    await page.until(`globalThis.isOld !== true && ${isConnected}`);
    // A new daemon does not know what the tab has stored; the tab that goes on does not need it.
    const stored = await page.evaluate<string>(`sessionStorage.getItem('berth.key')`);
    expect((await exchangeKey(pageServer(daemon), stored)).status).toBe(201);
    daemon.signal('SIGKILL');
    await daemon.exited;
    const next = await daemonOn(daemon.port, daemon.stateDir);
    expect((await exchangeKey(pageServer(next), stored)).status).toBe(401);
    await page.until(`${isConnected} && sessionStorage.getItem('berth.key') !== ${JSON.stringify(stored)}`);
  },
);

it.runIf(hasChromium)(name('starts, stops and restarts what is clicked, and says how it ended'), async () => {
  const daemon = await withServices();
  const cmd = 'sleep 0.2; exit 3';
  await daemon.request('POST', '/v1/services', { name: 'bad', port: freePort(), cmd }, headers);
  const page = await open(daemon);
  const button = (label: string): string => `document.querySelector('[aria-label="${label}"]')`;
  const status = (service: string): string =>
    `[...document.querySelectorAll('tr')].find((row) => row.cells[0]?.textContent === '${service}').cells[1].textContent`;
  await page.until(`${button('start db')} !== null`);
  await page.evaluate(`${button('start db')}.click()`);
  await page.until(`${status('db')} === 'running'`);
  await page.evaluate(`${button('stop db')}.click()`);
  await page.until(`${status('db')} === 'stopped'`);
  await page.evaluate(`${button('start bad')}.click()`);
  await page.until(`${status('bad')} === 'crashed (exit code 3)'`);
});

it.runIf(hasChromium)(
  name('shows the log of the service that is chosen as it grows, and why it is so'),
  async () => {
    const daemon = await withServices();
    const cmd = 'echo "<b>first</b>"; while read line; do echo "got $line"; done < wire; echo bye; exit 4';
    const { stateDir } = daemon;
    const chatty = { name: 'chatty', port: freePort(), cmd: `mkfifo wire; ${cmd}`, cwd: stateDir };
    await daemon.request('POST', '/v1/services', chatty, headers);
    await daemon.request('POST', '/v1/services/chatty/start', undefined, headers);
    const page = await open(daemon);
    const lines = text('#log-lines');
    await page.until(`document.querySelector('[href="#log=chatty"]') !== null`);
    await page.evaluate(`document.querySelector('[href="#log=chatty"]').click()`);
    await page.until(`${lines} === '<b>first</b>\\n'`);
    await page.until(`${text('#log-state')} === 'following'`);
    await writeFile(`${stateDir}/wire`, 'one\ntwo\n');
    await page.until(`${lines} === '<b>first</b>\\ngot one\\ngot two\\nbye\\n'`);
    await page.until(`${text('#log-why')}.includes('4')`);
    // Another service's log replaces it, and closes.
    await page.evaluate(`document.querySelector('[href="#log=web"]').click()`);
    await page.until(`${text('#log-title')} === 'Log of web' && ${lines} === ''`);
    await page.evaluate(`document.querySelector('#log a').click()`);
    await page.until(`document.getElementById('log').hidden`);
  },
);

it.runIf(hasChromium)(name('keeps the newest lines of a long log, at its end'), async () => {
  const daemon = await withServices();
  const long = { name: 'long', port: freePort(), cmd: 'seq 1 5000; sleep 600' };
  await daemon.request('POST', '/v1/services', long, headers);
  const page = await open(daemon);
  await page.evaluate(`location.hash = 'log=long'`);
  await page.until(`${text('#log-state')} === 'following'`);
  await daemon.request('POST', '/v1/services/long/start', undefined, headers);
  await page.until(`${text('#log-lines')}.endsWith('\\n5000\\n')`);
  const first = await page.evaluate<number>(`parseInt(${text('#log-lines')})`);
  const { length } = (await page.evaluate<string>(text('#log-lines'))).trim().split('\n');
  expect({ first, length }).toEqual({ first: 3001, length: 2000 });
  await page.until(
    `(() => { const { scrollHeight, scrollTop, clientHeight } = document.getElementById('log-lines');
      return scrollHeight > clientHeight && scrollHeight - scrollTop - clientHeight < 8; })()`,
  );
});

it.runIf(hasChromium)(name('shows only what has the wanted text in its name or its group'), async () => {
  const page = await open(await withServices());
  await page.until(`document.querySelector('[href="#log=web"]') !== null`);
  const shown = async (wanted: string): Promise<string> => {
    const field = "document.getElementById('filter')";
    await page.evaluate(`${field}.value = ${JSON.stringify(wanted)}`);
    await page.evaluate(`${field}.dispatchEvent(new Event('input'))`);
    return page.evaluate(
      `[...document.querySelectorAll('tbody:not([hidden]) tr:not([hidden]) th[scope=row]')].map((cell) => cell.textContent).join()`,
    );
  };
  expect(await shown('')).toBe('db,my_bot,web');
  expect(await shown('WE')).toBe('web');
  expect(await shown('site')).toBe('web');
  expect(await shown('bot ')).toBe('my_bot');
  expect(await shown('nothing')).toBe('');
});
