// What people do in terminals of the page: paste, select and copy, watch, and take over.
import { readFileSync, writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../kit/daemon.ts';
import { trickyText } from '../kit/tricky_text.ts';
import { BROWSER_TEST, browserTest, hasChromium } from './browser.ts';
import { ask, daemonOn, openBerth, shownScreen } from './page_services.ts';

const PASTE_CHARACTERS = 100_000;
const LONG_PASTE_CHARACTERS = 2 * 1024 * 1024;
const attached = (page: Page) => page.getByText(/attached · \d+×\d+/).waitFor();
const focus = (page: Page) => page.locator('.terminal-box textarea').focus();
const clipboard = (page: Page): Promise<string> => page.evaluate('navigator.clipboard.readText()');

/** Selects the first line of the terminal with the mouse. */
async function selectFirstLine(page: Page): Promise<void> {
  const box = await page.locator('.xterm-screen').boundingBox();
  if (!box) throw new Error('no terminal');
  await page.mouse.click(box.x + 4, box.y + 6, { clickCount: 3 });
}

it.runIf(hasChromium)(
  browserTest('a paste of 100 KB arrives exactly, and a selection is copied'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    const text = trickyText(PASTE_CHARACTERS);
    // As terminals send it: the ends of lines are those of the Enter key.
    const sent = Buffer.from(text.replaceAll('\n', '\r'));
    const bracketed = Buffer.concat([Buffer.from('\x1b[200~'), sent, Buffer.from('\x1b[201~')]);
    const sinks = [
      ['sink', '', sent],
      ['brackets', '\\033[?2004h', bracketed],
    ] as const;
    for (const [name, mode, { length }] of sinks) {
      const cmd = `stty raw -echo; printf '${mode}ready'; head -c ${length} > ${name}; printf ' got it'; sleep 600`;
      await ask(daemon, 'POST', '/v1/agents/spinup', { name, cmd, cwd: daemon.stateDir });
    }
    const page = await openBerth(daemon);
    for (const [name, , expected] of sinks) {
      await page.evaluate((to) => location.assign(to), `#/agents/${name}`);
      await page.locator('h1', { hasText: name }).waitFor();
      await attached(page);
      const screen = async () => (await ask(daemon, 'GET', `/v1/agents/${name}/screen`)).lines[0];
      await eventually(async () => (await screen()) === 'ready');
      // The page brackets a paste once it has seen the mode, which is before the word.
      await eventually(async () => (await shownScreen(page)) === 'ready');
      await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
      await focus(page);
      await page.keyboard.press('Shift+Insert');
      await eventually(async () => (await screen()) === 'ready got it', screen);
      expect(readFileSync(`${daemon.stateDir}/${name}`).equals(expected)).toBe(true);
    }
    await eventually(async () => {
      await selectFirstLine(page);
      await page.keyboard.press('Control+Shift+C');
      return (await clipboard(page)).trimEnd() === 'ready got it';
    });
  },
);

it.runIf(hasChromium)(
  browserTest('a pasted text cannot end the paste or press a key'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    const cmd = `stty raw -echo; printf '\\033[?2004hready'; head -c 17 > got; printf ' got it'; sleep 600`;
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'sink', cmd, cwd: daemon.stateDir });
    const page = await openBerth(daemon, '#/agents/sink');
    await attached(page);
    await eventually(async () => (await shownScreen(page)) === 'ready');
    const text = 'a\x1b[201~\x03\x9b\tb';
    await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await focus(page);
    await page.keyboard.press('Shift+Insert');
    await eventually(async () => (await shownScreen(page)) === 'ready got it');
    expect(readFileSync(`${daemon.stateDir}/got`, 'utf8')).toBe('\x1b[200~a[201~\tb\x1b[2');
  },
);

it.runIf(hasChromium)(
  browserTest(
    'a paste of some MiB waits until the program reads it, and the page says so when it never does',
  ),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    const cwd = daemon.stateDir;
    const text = trickyText(LONG_PASTE_CHARACTERS);
    const sent = Buffer.from(text.replaceAll('\n', '\r'));
    const read = `while [ ! -e gate ]; do sleep 0.05; done; head -c ${sent.length} > sink; printf ' got it'`;
    const page = await openBerth(daemon);
    const paste = async (name: string, cmd: string) => {
      await ask(daemon, 'POST', '/v1/agents/spinup', { name, cmd, cwd });
      await page.evaluate((to) => location.assign(to), `#/agents/${name}`);
      await page.locator('h1', { hasText: name }).waitFor();
      await attached(page);
      await eventually(async () => (await shownScreen(page)) === 'ready');
      await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
      await focus(page);
      await page.keyboard.press('Shift+Insert');
      await page.getByText(/attached · \d+×\d+ · \d+\.\d MiB of input waiting for the program/).waitFor();
    };
    await paste('late', `stty raw -echo; printf ready; ${read}; sleep 600`);
    writeFileSync(`${cwd}/gate`, '');
    await eventually(async () => (await shownScreen(page)) === 'ready got it');
    expect(readFileSync(`${cwd}/sink`).equals(sent)).toBe(true);
    await page.getByText(/attached · \d+×\d+$/).waitFor();
    await paste('deaf', 'stty raw -echo; printf ready; exec sleep 600');
    await page.getByLabel('who types').selectOption('observe');
    await page.getByRole('button', { name: 'change: watch only' }).click();
    await page.getByText(/deaf: the last \d+\.\d MiB of the input did not arrive/).waitFor();
    await attached(page);
  },
);

it.runIf(hasChromium)(
  browserTest('one viewer takes over from another, which watches from then on'),
  BROWSER_TEST,
  async () => {
    const daemon = await daemonOn(0);
    await ask(daemon, 'POST', '/v1/agents/spinup', { name: 'typist', cmd: 'stty -echo; exec cat' });
    const screen = async () => (await ask(daemon, 'GET', '/v1/agents/typist/screen')).lines.join(' ').trim();
    const one = await openBerth(daemon, '#/agents/typist');
    const other = await openBerth(daemon, '#/agents/typist');
    const modeOf = (page: Page) => page.getByLabel('who types');
    const choose = async (page: Page, mode: string) => {
      await modeOf(page).selectOption(mode);
      await page.getByRole('button', { name: /^change: / }).click();
      await eventually(async () => (await ask(daemon, 'GET', '/v1/agents/typist')).viewers === 2);
      await attached(page);
    };
    const type = async (page: Page, word: string) => {
      await focus(page);
      await page.keyboard.type(word);
      await page.keyboard.press('Enter');
    };
    await Promise.all([attached(one), attached(other)]);
    await type(one, 'first');
    await eventually(async () => (await screen()) === 'first', screen);
    await choose(one, 'write');
    await choose(other, 'write');
    // The one before is told, and watches.
    await one.getByText('another viewer has taken over').first().waitFor();
    await eventually(async () => (await modeOf(one).inputValue()) === 'observe');
    await attached(one);
    await type(one, 'ignored');
    await type(other, 'second');
    await eventually(async () => (await screen()) === 'first second', screen);
    for (const page of [one, other]) {
      await eventually(async () => {
        await page.getByRole('button', { name: 'copy the screen' }).click();
        return (await clipboard(page)).replaceAll('\n', ' ') === 'first second';
      });
    }
    await choose(one, 'shared');
    await type(one, 'third');
    await eventually(async () => (await screen()) === 'first second third', screen);
  },
);
