// A page in a real browser, driven through its developer tools: every wait is for a condition in the page.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach } from 'vitest';
import { WebSocket } from 'ws';
import { eventually, newFolder } from '../kit/daemon.ts';

export const hasChromium = spawnSync('chromium', ['--version']).error === undefined;

const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  '--remote-debugging-port=0',
];

export interface BrowserPage {
  /** The value of an expression in the page; a promise is awaited. Rejects with an error that it throws. */
  evaluate<T>(expression: string): Promise<T>;
  /** Resolves when `expression` is true in the page; the test's own timeout is the limit. */
  until(expression: string): Promise<void>;
}

interface Reply {
  id?: number;
  /** Of an event. */
  method?: string;
  error?: { message: string };
  result?: { result?: { value?: unknown }; exceptionDetails?: { exception?: { description?: string } } };
}

const running: ChildProcess[] = [];
afterEach(async () => {
  for (const browser of running.splice(0)) {
    if (browser.exitCode !== null || browser.signalCode !== null) continue;
    const ended = once(browser, 'exit');
    browser.kill();
    await ended;
  }
});

/** The debugger address of the browser's first page. */
async function debuggerOf(browser: ChildProcess): Promise<string> {
  if (!browser.stderr) throw new Error('the browser says nothing');
  for await (const line of createInterface(browser.stderr)) {
    const host = /^DevTools listening on ws:\/\/([^/]+)\//.exec(line)?.[1];
    if (host === undefined) continue;
    const targets = (await (await fetch(`http://${host}/json/list`)).json()) as {
      type: string;
      webSocketDebuggerUrl: string;
    }[];
    const page = targets.find(({ type }) => type === 'page');
    if (page) return page.webSocketDebuggerUrl;
  }
  throw new Error('the browser ended before it had a page');
}

/** Opens `url`; the browser ends with the test. */
export async function openPage(url: string): Promise<BrowserPage> {
  const browser = spawn('chromium', [...FLAGS, `--user-data-dir=${newFolder()}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  running.push(browser);
  const socket = new WebSocket(await debuggerOf(browser));
  browser.stderr.resume();
  await once(socket, 'open');
  const waiting = new Map<number, (reply: Reply) => void>();
  const heard = new Map<string, (event: unknown) => void>();
  socket.on('message', (text: Buffer) => {
    const reply: Reply = JSON.parse(text.toString());
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
    else if (reply.method !== undefined) heard.get(reply.method)?.(reply);
  });
  let asked = 0;
  const send = (method: string, params: object): Promise<Reply> => {
    asked += 1;
    const id = asked;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  const evaluate = async <T>(expression: string): Promise<T> => {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { error, result } = await send('Runtime.evaluate', options);
    const thrown = error?.message ?? result?.exceptionDetails?.exception?.description;
    if (thrown !== undefined) throw new Error(`${expression}: ${thrown}`);
    return result?.result?.value as T;
  };
  const loaded = new Promise((resolve) => {
    heard.set('Page.loadEventFired', resolve);
  });
  await send('Page.enable', {});
  await send('Page.navigate', { url });
  await loaded;
  return {
    evaluate,
    until: async (expression) => void (await eventually(() => evaluate<boolean>(expression))),
  };
}
