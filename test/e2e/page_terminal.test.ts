// Terminals of agents in the page: what they show is what the daemon says that the screen is.
import { spawnSync } from 'node:child_process';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Daemon, eventually } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { ask, daemonOn, openBerth, shownScreen, TOKEN, withServices } from './page_services.ts';

type Program = readonly [name: string, cmd: string, part: string];

async function trueScreen(daemon: Daemon, name: string): Promise<string> {
  const { lines } = await ask(daemon, 'GET', `/v1/agents/${name}/screen`);
  return lines.join('\n').replace(/\n+$/, '');
}

/** Whether the terminal in the page has all of its rows and columns in sight, and nothing to scroll to. */
const isWhole = (page: Page): Promise<boolean> =>
  page.locator('.terminal-box').evaluate((box) => {
    const inner = box.querySelector('.xterm-screen')?.getBoundingClientRect();
    const { right, bottom } = box.getBoundingClientRect();
    const fits = inner !== undefined && inner.right <= right && inner.bottom <= bottom;
    return fits && box.scrollHeight <= box.clientHeight;
  });

/** Whether what the cells of the terminal leave free has the colour of its box. */
const hasOneGround = (page: Page): Promise<boolean> =>
  page.locator('.terminal-box').evaluate((box) => {
    const parts = [box, ...box.querySelectorAll('.xterm, .xterm-viewport, .xterm-screen')];
    const grounds = parts.map((part) => getComputedStyle(part).backgroundColor);
    return new Set(grounds.filter((colour) => colour !== 'rgba(0, 0, 0, 0)')).size === 1;
  });

const attached = (page: Page) => page.getByText(/attached · \d+×\d+/).waitFor();

/** Waits until both are the same, and have `part`. */
async function isSame(daemon: Daemon, page: Page, name: string, part: string): Promise<void> {
  const saw = { program: name, screen: '', shown: '' };
  await eventually(
    async () => {
      saw.screen = await trueScreen(daemon, name);
      saw.shown = await shownScreen(page);
      return saw.screen.includes(part) && saw.shown === saw.screen;
    },
    () => saw,
  );
}

/** What a terminal can be asked for, and programs that ask for most of it. */
const SEQUENCES: readonly Program[] = [
  ['painter', `printf '\\033[?1049h\\033[2J\\033[3;4Hcolumn four'; sleep 600`, 'column four'],
  [
    'wide',
    `printf '日本語 👩‍💻 é̀ ｶﾅ │ ┌─┐ ✅\\n\\033[7minverse\\033[0m\\033[5;10Hthere'; sleep 600`,
    'there',
  ],
  ['flood', `seq 1 1500000; echo the end; sleep 600`, 'the end'],
  [
    'scroll',
    `printf '\\033[5;10r\\033[5;1H'; seq 1 40; printf '\\033[r\\033[20;1Hbelow'; sleep 600`,
    'below',
  ],
  ['editor', 'seq 1 300 | vim.tiny -u NONE -', '1\n2\n3\n'],
  [
    'tabs',
    `printf 'a\\tb\\033[3g\\033[12G\\033H\\rx\\ty\\n\\033(0lqqk\\033(B\\033[4hin\\033[2D+\\033[4l done'; sleep 600`,
    'done',
  ],
  [
    'erased',
    `seq 1 60; printf '\\033[5;5H\\033[1J\\033[10;1H\\033[3M\\033[2L\\033[7Pgone\\033[3X'; sleep 600`,
    'gone',
  ],
];

/** Programs that people run in terminals, as long as they show the same. */
const FULL_SCREEN: readonly Program[] = [
  ['htop', 'htop -d 600', 'Load average'],
  ['top', 'top -d 600', 'load average'],
  ['less', 'seq 300 | less -N', '1 1'],
  ['nano', 'nano /etc/hosts', 'GNU nano'],
  ['tmux', 'tmux -S "$PWD/tmux" -f /dev/null new-session "echo in tmux; exec sleep 600"', 'in tmux'],
  ['mc', 'mc --nosubshell /etc', 'Right'],
  ['python3', 'python3 -q', '>>>'],
  ['node', 'node', '>'],
  ['psql', 'PAGER=less psql --help | less', 'PostgreSQL'],
  ['man', 'man ls', 'LS(1)'],
  ['whiptail', 'whiptail --menu "Which?" 15 60 4 a Apple b Banana', 'Apple'],
  ['dialog', 'dialog --yesno "Sure?" 8 40', 'Sure?'],
  [
    'git',
    'git init -q tree; cd tree; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one; git -c core.pager="less -+F" log --color=always',
    'commit',
  ],
];

/** They take a minute: they run with `BERTH_TEST_PROGRAMS=all`. */
const PROGRAMS = process.env['BERTH_TEST_PROGRAMS'] === 'all' ? FULL_SCREEN : [];

const isInstalled = (program: string): boolean => spawnSync('which', [program]).status === 0;
const named = (what: string, program: string): string =>
  isInstalled(program) ? browserTest(what) : `${what} (skipped: ${program} is not installed)`;

/** Shows the terminal of each program, until it is what the daemon says. */
async function showEach(daemon: Daemon, page: Page, programs: readonly Program[]): Promise<void> {
  const cwd = daemon.stateDir;
  for (const [name, cmd] of programs) await ask(daemon, 'POST', '/v1/agents/spinup', { name, cmd, cwd });
  for (const [name, , part] of programs) {
    await page.evaluate((to) => location.assign(to), `#/agents/${name}`);
    await page.locator('h1', { hasText: name }).waitFor();
    await attached(page);
    await isSame(daemon, page, name, part);
  }
}

for (const program of PROGRAMS) {
  const [name] = program;
  it.runIf(hasChromium && isInstalled(name))(
    named(`shows the screen of ${name}`, name),
    BROWSER_TEST,
    async () => {
      const daemon = await daemonOn(0);
      await showEach(daemon, await openBerth(daemon), [program]);
    },
  );
}

it.runIf(hasChromium)(
  browserTest('shows the screen after output that would hang or break its emulator'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    const page = await openBerth(daemon);
    const output = '\\033[2147483647S\\033[2147483647L\\033[999;999HZ\\033[1J\\033[HAFTER\\n';
    const cmd = `printf hello; read _; printf '${output}'; sleep 600`;
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'hostile', cmd });
    await page.evaluate(`location.assign('#/agents/hostile')`);
    await attached(page);
    await isSame(daemon, page, 'hostile', 'hello');
    await ask(daemon, 'POST', '/v1/agents/hostile/keys', { keys: ['Enter'] });
    await isSame(daemon, page, 'hostile', 'AFTER');
  },
);

const WHAT = 'show what the screen is, in every size';

it.runIf(hasChromium && isInstalled('vim.tiny'))(named(WHAT, 'vim.tiny'), BROWSER_TEST, async () => {
  const daemon = await daemonOn(freePort());
  const page = await openBerth(daemon);
  await showEach(daemon, page, SEQUENCES);
  // A prompt is typed for the agent, unless it asks something.
  const prompt = page.getByRole('textbox', { name: 'prompt for erased' });
  await prompt.fill('two\nlines of it');
  await prompt.press('Enter');
  await eventually(async () => (await prompt.inputValue()) === '');
  await isSame(daemon, page, 'erased', 'lines of it');
  await ask(daemon, 'POST', '/v1/agents/erased/state', { state: 'blocked', message: 'May I?' });
  await page.getByText('It asks something').waitFor();
  await prompt.fill('yes');
  await prompt.press('Enter');
  expect(await prompt.inputValue()).toBe('yes');
  // Smaller, larger, and by a daemon that has not seen any of it: vim draws only what has changed.
  await page.evaluate(`location.assign('#/agents/editor')`);
  const rowsOf = async (): Promise<number> => (await ask(daemon, 'GET', '/v1/agents/editor/screen')).rows;
  for (const [width, height] of [
    [900, 500],
    [1440, 1000],
  ] as const) {
    const before = await rowsOf();
    await page.setViewportSize({ width, height });
    await eventually(async () => (await rowsOf()) !== before);
    await ask(daemon, 'POST', '/v1/agents/editor/keys', { text: `${height / 5}G` });
    await isSame(daemon, page, 'editor', `\n${height / 5}`);
    await eventually(() => isWhole(page));
    expect([height, await hasOneGround(page)]).toEqual([height, true]);
  }
  // One with more columns than a terminal can have.
  await page.setViewportSize({ width: 12_000, height: 400 });
  await page.getByText('attached · 1000×').waitFor();
  await page.setViewportSize({ width: 1440, height: 1000 });
  // One that shrinks with its cursor in the last row, which nothing moves.
  await page.evaluate(`location.assign('#/agents/flood')`);
  await page.locator('h1', { hasText: 'flood' }).waitFor();
  await isSame(daemon, page, 'flood', 'the end');
  await eventually(() => isWhole(page));
  await page.setViewportSize({ width: 900, height: 500 });
  await eventually(() => isWhole(page));
  await page.setViewportSize({ width: 1440, height: 1000 });
  await page.evaluate(`location.assign('#/agents/editor')`);
  await page.locator('h1', { hasText: 'editor' }).waitFor();
  await isSame(daemon, page, 'editor', '\n200');
  const rows = await rowsOf();
  daemon.signal('SIGKILL');
  await daemon.exited;
  const next = await daemonOn(daemon.port, daemon.stateDir);
  expect((await ask(next, 'GET', '/v1/agents/editor/screen')).rows).toBe(rows);
  await isSame(next, page, 'editor', '\n200');
});

it.runIf(hasChromium)(
  browserTest('shows output that it has not parsed yet at the size for which it was printed'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    const page = await openBerth(daemon);
    // At the end, the cursor goes to the last row, whichever that is.
    const last = `printf '\\033[999;1H\\033[5A\\033[1J\\r%s' "the end of $round"`;
    const cmd = `stty -echo; while read -r round; do seq 100000; ${last}; done`;
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'printer', cmd });
    await page.evaluate(`location.assign('#/agents/printer')`);
    await attached(page);
    const url = `ws://127.0.0.1:${daemon.port}/v1/agents/printer/attach`;
    const other = new WebSocket(url, ['berth.v1'], { headers: { authorization: `Bearer ${TOKEN}` } });
    let seen = '';
    other.on('message', (data: Buffer, isBinary) => {
      if (!isBinary) return;
      seen = (seen + data.toString('latin1')).slice(-200);
      other.send(JSON.stringify({ ack: data.length }));
    });
    for (let round = 0; round < 4; round += 1) {
      await ask(daemon, 'POST', '/v1/agents/printer/keys', { text: `${round}\n` });
      await eventually(() => seen.includes(`the end of ${round}`));
      other.send(JSON.stringify({ resize: [100, 30 + 10 * (round % 2)] }));
      await isSame(daemon, page, 'printer', `the end of ${round}`);
    }
    other.close();
  },
);

/** Opens the view of `name` and leaves it, again and again, after a time that differs from round to round. */
const OPEN_AND_LEAVE = `(async (name, rounds) => {
  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  for (let round = 0; round < rounds; round += 1) {
    location.assign('#/agents/' + name);
    await pause((round * 7) % 200);
    location.assign('#/events');
    await pause(round % 40);
  }
})`;

it.runIf(hasChromium)(
  browserTest('a terminal is left at any time and opened again without a complaint'),
  BROWSER_TEST,
  async () => {
    const daemon = await withServices();
    const page = await openBerth(daemon);
    // Many more often than a browser keeps WebGL contexts.
    await page.evaluate(`${OPEN_AND_LEAVE}('my_bot', 100)`);
    await page.evaluate(`location.assign('#/agents/my_bot')`);
    await attached(page);
  },
);
