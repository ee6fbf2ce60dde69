// The rules for shells: on their last lines, and on what real shells show.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as nodePty from 'node-pty';
import { describe, expect, it } from 'vitest';
import { loadRules } from '../../src/adapters/screen_rules_file.ts';
import { tryRules } from '../../src/adapters/screen_state.ts';
import { openTerminalScreen } from '../../src/adapters/terminal_screen.ts';
import { afterThisTest, tempDir } from '../kit/actors.ts';
import { eventually } from '../kit/eventually.ts';
import { must } from '../kit/must.ts';

const { sets } = await loadRules({
  folders: ['/nonexistent', join(import.meta.dirname, '../../src/agent-rules')],
});
const [, RULES] = must(sets.find(([type]) => type === 'shell'));
const COLS = 80;

async function stateOf(lines: string[]): Promise<string | undefined> {
  const { screen } = await tryRules(RULES, { lines, title: '', notification: '' });
  return screen?.state;
}

/** A prompt with `right` at the right edge. */
const withRight = (left: string, right: string): string => left.padEnd(COLS - right.length) + right;

/** The last lines of screens that wait for a command. */
const PROMPTS = String.raw`
$
#
bash-5.2$
bash-5.2#
-bash-4.2$
sh-5.1#
hibash-5.2#
/ #
~ $
\u@\h:\w$
me@host:~$
root@web-01:/srv/v2#
(venv) me@host:~/v2$
[me@host v2]$
{"a":"50% $"}root@vm:~#
~/v2$
/srv/v2#
(base) ~/v2$
deploy v2 $
└─$
╰─➤
host%
web01%
vm#
vm2#
me@mac v2 %
me@mac ~ %
%
➜  ~
➜  dir
➜  dir git:(main)
➜  dir git:(main) ✗
➜  my dir git:(feat/x-2) ✗
(venv) ➜  dir
root@vm ~#
root@vm ~ [1]#
me@host ~/v2>
me@host ~/v2 (main) [127]>
~/v2>
❯
❮
venv ❯
~/v2 ❯
took 2s ❯
λ
»
>>>
mysql>
sqlite>
MariaDB [(none)]>
irb(main):001:0>
127.0.0.1:6379>
db=>
db=#`;

const RIGHT_PROMPTS = [
  withRight('web01%', '~/src'),
  withRight('➜  dir git:(main) ✗', '12:00'),
  withRight('❯', 'at 12:00:01'),
  withRight('╰─❯', '─╯'),
  // Powerline's arrow.
  'me \ue0b0 ~/v2 \ue0b0',
];

/** The last lines of screens on which a program runs. */
const RUNNING = `
bash-5.2# sleep 100
root@web-01:/srv# make
me@host:~$ grep -c x$
vm# echo 100 #
host% sleep 9
➜  dir ls
➜  dir git:(main) ✗ make
❯ sleep 9
❯ sleep 9                                                12:00
me@host ~/dir> sleep 9
45%
Progress: 45%
downloaded 45 %
####   12.3%
########
foo    #####
  ➜  Local:   http://localhost:5173/
➜  Local:   http://localhost:5173/
  ➜  press h + enter
<p>text</p>
a <b>
Step 3#
Price: 5$
il dit « bonjour »
# Name      Size
>
Compiling x`;

const linesOf = (text: string): string[] => text.split('\n').slice(1);

it.each([...linesOf(PROMPTS), ...RIGHT_PROMPTS])('the prompt %j is idle', async (line) => {
  expect(await stateOf(['hi', line, ''])).toBe('idle');
});

it.each(linesOf(RUNNING))('%j is working', async (line) => {
  expect(await stateOf(['bash-5.2# make', line])).toBe('working');
});

/** The part of node-pty that is used here. */
interface Terminal {
  pid: number;
  onData(take: (data: Uint8Array) => void): void;
  onExit(take: () => void): void;
  write(text: string): void;
  kill(signal: string): void;
}

const SHELLS: readonly (readonly [program: string, ...args: string[]])[] = [
  ['bash', '--norc'],
  ['bash', '--rcfile', '/etc/bash.bashrc'],
  ['sh'],
  ['zsh', '-f'],
  ['fish', '--no-config'],
];
const isInstalled = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/**
 * Whether `cat` is in the foreground of the terminal of a shell. A shell that has only shown the command line
 * may still read what is typed itself.
 */
function isCatInFront({ pid }: Terminal): boolean {
  const group = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[5];
  const name = `/proc/${group}/comm`;
  return existsSync(name) && readFileSync(name, 'utf8') === 'cat\n';
}

describe.each(SHELLS)('%s %s', (program, ...args) => {
  it.skipIf(!isInstalled(program))('is idle at its prompt, and working while a program runs', async () => {
    const home = tempDir();
    const env = { HOME: home, PATH: process.env['PATH'], TERM: 'xterm-256color', LANG: 'C.UTF-8' };
    const screen = await openTerminalScreen(COLS, 24);
    const pty = nodePty as unknown as { spawn(file: string, args: string[], options: object): Terminal };
    const terminal = pty.spawn(program, args, { cwd: home, env, cols: COLS, rows: 24, encoding: null });
    const over = new Promise<void>((resolve) => terminal.onExit(() => resolve()));
    terminal.onData((data) => void screen.write(data));
    afterThisTest(async () => {
      terminal.kill('SIGKILL');
      await over;
      screen.close();
    });
    const lines = (): string[] => screen.read(false).lines.filter((line) => line.trim() !== '');
    const isIdle = async () => (await stateOf(lines())) === 'idle';
    await eventually(isIdle, lines);
    for (const told of ['one', 'two']) {
      terminal.write('cat; false\r');
      await eventually(() => /cat; false$/.test(lines().at(-1) ?? ''), lines);
      expect(await stateOf(lines())).toBe('working');
      await eventually(() => isCatInFront(terminal), lines);
      // cat repeats the line that the terminal has echoed.
      terminal.write(`${told}\r`);
      await eventually(() => lines().slice(-2).join() === `${told},${told}`, lines);
      expect(await stateOf(lines())).toBe('working');
      terminal.write('\x04');
      await eventually(isIdle, lines);
    }
  });
});
