// A busy tab: 500 services that are measured every two seconds, a log of 1,000 lines a second of which
// 100,000 are kept, and a terminal that is redrawn twenty times a second.
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { type Daemon, registerMany, startDaemon, withFolder } from './kit/daemon.ts';
import { cost, type Row } from './kit/harness.ts';

const SERVICES = 500;
/** Uses a little processor time, which differs between measurements. */
const RESTLESS = 'while sleep 2; do :; done';
/** The page keeps at most 100,000 lines and drops them in chunks. */
const KEPT_LINES = 99_800;
/** Prints as many lines as the page keeps, then 1,000 a second. */
const CHATTY =
  `seq -f "line %g of those that are kept" ${KEPT_LINES + 10_000}; ` +
  'while sleep 0.1; do seq -f "info request %g done method=GET path=/v1/orders status=200" 100; done';
const BUSY = `while sleep 0.05; do n=$((n+1)); printf '\\033[H'; seq -f "$n: row %g of a busy screen" 40; done`;
const HASH = '#/services?panes=log.chatty~terminal.busy';

/** The duration of the trace, and the time over which memory must not grow. */
const SECONDS = Number(process.env['BERTH_BENCH_PAGE_SECONDS'] ?? 60);
const REST_SECONDS = 5;
const SETTLE_MS = 5_000;
const POLL_MS = 500;
const FILL_TIMEOUT_MS = 120_000;
const MIB = 1_024 * 1_024;

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** In microseconds. */
  dur?: number;
  /** The processor time in it, in microseconds. */
  tdur?: number;
  args: { name?: string };
}

/** In milliseconds. */
interface LongestTask {
  /** By the clock; on a busy machine, mostly the wait for a processor. */
  ms: number;
  /** Processor time of the page itself. */
  workMs: number;
}

/** The longest tasks of the page's main thread within `ms`. */
async function longestTask(browser: Browser, page: Page, ms: number): Promise<LongestTask> {
  await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline', '__metadata'] });
  await pause(ms);
  const { traceEvents } = JSON.parse(String(await browser.stopTracing())) as { traceEvents: TraceEvent[] };
  const threadOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(threadOf),
  );
  const tasks = traceEvents.filter((event) => event.name === 'RunTask' && mains.has(threadOf(event)));
  if (tasks.length === 0) throw new Error('the trace has no tasks of the page');
  return {
    ms: Math.max(...tasks.map(({ dur = 0 }) => dur)) / 1_000,
    workMs: Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1_000,
  };
}

/** The live memory of the tab's scripts and elements, in MiB. */
async function heap(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize, embedderHeapUsedSize = 0 } = (await session.send('Runtime.getHeapUsage')) as {
    usedSize: number;
    embedderHeapUsedSize?: number;
  };
  return (usedSize + embedderHeapUsedSize) / MIB;
}

/** Starts the load, and waits until the log has as many lines as the page keeps. */
async function fill(daemon: Daemon, page: Page): Promise<void> {
  await daemon.ask('POST', '/v1/services', { name: 'chatty', port: null, cwd: '/tmp', cmd: CHATTY });
  await daemon.ask('POST', '/v1/agents/spinup', { name: 'busy', cwd: '/tmp', cmd: BUSY });
  await page.evaluate((to) => location.assign(to), HASH);
  await page.getByText(/attached · \d+×\d+/).waitFor();
  await daemon.ask('POST', '/v1/services/chatty/start?wait=false');
  const until = performance.now() + FILL_TIMEOUT_MS;
  for (let lines = 0; lines < KEPT_LINES; await pause(POLL_MS)) {
    const state = (await page.locator('.log-state').textContent()) ?? '';
    lines = Number(/(\d+) lines/.exec(state)?.[1] ?? 0);
    if (performance.now() > until) throw new Error(`the log of the page has not been filled: ${state}`);
  }
}

interface Busy {
  rest: LongestTask;
  busy: LongestTask;
  heapBefore: number;
  heapAfter: number;
}

const measure = (browser: Browser): Promise<Busy> =>
  withFolder(async (folder) => {
    const daemon = await startDaemon(folder);
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    try {
      await registerMany(daemon, SERVICES, RESTLESS);
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${daemon.port}/`);
      await page.locator('.table-row[data-name]').first().waitFor();
      await pause(SETTLE_MS);
      const rest = await longestTask(browser, page, REST_SECONDS * 1_000);
      await daemon.ask('POST', '/v1/groups/bench/start');
      await fill(daemon, page);
      await pause(SETTLE_MS);
      const session = await context.newCDPSession(page);
      const heapBefore = await heap(session);
      const busy = await longestTask(browser, page, SECONDS * 1_000);
      return { rest, busy, heapBefore, heapAfter: await heap(session) };
    } finally {
      await context.close();
      await daemon.end();
    }
  });

/** The rows of a busy tab. */
export async function busyPage(browser: Browser): Promise<Row[]> {
  const { rest, busy, heapBefore, heapAfter } = await measure(browser);
  const once = (name: string, unit: string, floor: number, subject: number): Promise<Row> =>
    cost(name, unit, { floor: async () => floor, subject: async () => subject, turns: 1 });
  return [
    await once('longest task of a busy tab', 'ms', rest.ms, busy.ms),
    await once('its work in a task', 'ms', rest.workMs, busy.workMs),
    await once('memory of a busy tab', 'MiB', heapBefore, heapAfter),
  ];
}
