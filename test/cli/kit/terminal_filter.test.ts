// docs/reference.md "Attach on the command line": the user's terminal is as it was, whatever the agent printed.
import { describe, expect, it } from 'vitest';
import { enterScreen, leaveScreen, TerminalFilter } from '../../../src/cli/kit/terminal_filter.ts';
import { FUZZ_SEED, hostileSequences, randomOutput, seededRandom } from '../../kit/hostile_output.ts';
import { shownScreen } from '../../kit/shown_screen.ts';

const [COLS, ROWS] = [40, 10];

const filtered = (text: string): string => new TerminalFilter().filter(Buffer.from(text));

/** What a terminal shows after `text`, and what it keeps. */
const shown = (text: string): Promise<string> => shownScreen(text, COLS, ROWS);

const BEFORE = `${Array.from({ length: 30 }, (_, row) => `line ${row} of the user`).join('\r\n')}\r\n$ `;
/** Shows wrapping, tabs, character sets, colours, insertion, origin and the scroll region. */
const PROBE = `${'q'.repeat(COLS + 5)}\r\n\ta\tb\x1b[H\x1b[10Cc\x1b[${ROWS}H${'\n'.repeat(3)}d\re`;
/** A terminal that ran nothing. A session saves the cursor, as it begins. */
const NO_SESSION = `${BEFORE}\x1b7${PROBE}`;
const session = (output: string): string => `${BEFORE}${enterScreen('bot')}${output}${leaveScreen(COLS)}`;

describe("the user's terminal", () => {
  it.each([
    ['insert mode', '\x1b[4h'],
    ['the keypad', '\x1b=\x1b[?66h'],
    ['the cursor keys', '\x1b[?1h'],
    ['no wrapping', '\x1b[?7l'],
    ['the origin', '\x1b[3;5r\x1b[?6h'],
    ['the scroll region', '\x1b[2;4r'],
    ['margins', '\x1b[?69h\x1b[3;9s'],
    ['the mouse', '\x1b[?9h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1005h\x1b[?1006h\x1b[?1015h'],
    ['no tabs', '\x1b[3g'],
    ['other tabs', '\x1b[5G\x1bH'],
    ['the alternate screen', '\x1b[?1049htext\x1b[?1049l\x1b[?47h\x1b[?1047l'],
    ['pasting', '\x1b[?2004h'],
    ['the focus', '\x1b[?1004h'],
    ['the shape of the cursor', '\x1b[4 q\x1b[?25l'],
    ['character sets', '\x1b(0\x1b)0\x0e'],
    ['colours', '\x1b[1;31;44m\x1b[1"q'],
    ['erased scrollback', '\x1b[3J\x1b[2J'],
    ['a reset', '\x1bc'],
    ['reversed wrapping', '\x1b[?45h'],
    ['strings without an end', '\x1b]0;title'],
  ])('is restored after %s', async (_, output) => {
    expect(await shown(`${session(filtered(output))}${PROBE}`)).toBe(await shown(NO_SESSION));
  });

  it(`is restored after any output (BERTH_FUZZ_SEED=${FUZZ_SEED})`, async () => {
    const random = seededRandom(FUZZ_SEED);
    const corpus = hostileSequences();
    const expected = await shown(NO_SESSION);
    for (let round = 0; round < 40; round += 1) {
      const output = new TerminalFilter().filter(randomOutput(random, corpus, 4_096));
      expect([round, await shown(`${session(output)}${PROBE}`)]).toEqual([round, expected]);
    }
  });

  it('leaves every mode that can be set', () => {
    for (const mode of [1, 5, 6, 7, 9, 45, 66, 69, 1000, 1002, 1003, 1005, 1006, 1015, 2004]) {
      expect(filtered(`\x1b[?${mode}h`)).toBe(`\x1b[?${mode}h`);
      expect(leaveScreen(COLS)).toMatch(new RegExp(`\\x1b\\[\\?${mode}[hl]`));
    }
  });
});

describe('the filter', () => {
  it.each([
    ['setting the clipboard', '\x1b]52;c;ZXZpbA==\x07'],
    ['asking for the clipboard', '\x1b]52;c;?\x1b\\'],
    ['asking for the title', '\x1b[21t'],
    ['moving and resizing the window', '\x1b[3;0;0t\x1b[8;10;10t\x1b[2t'],
    ['files and notifications', '\x1b]1337;File=:AAAA\x07\x1b]9;hello\x07\x1b]777;notify;a;b\x07'],
    ['colours of the palette', '\x1b]4;1;rgb:00/00/00\x07\x1b]11;#000000\x07'],
    ['keys that are programmed', '\x1bP0;1|17/6c73\x1b\\'],
    ['questions for settings', '\x1bP$qm\x1b\\\x1bP+q544e\x1b\\'],
    ['questions for the content of the screen', '\x1b[1;1;1;1;1;1*y'],
    ['printing', '\x1b[5i\x1b[4i'],
    ['pictures and other applications', '\x1b_Ga=T;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\'],
    ['an answerback', '\x05'],
    [
      'other columns, another terminal, locked keys',
      '\x1b[?3h\x1b[?40h\x1b[?2l\x1b[2h\x1b[12l\x1b[61"p\x1b%@',
    ],
    ['C1 controls', '\u009b31m'.slice(0, 1)],
    ['saved modes', '\x1b[?1000s\x1b[?1000r'],
  ])('drops %s', (_, output) => {
    expect(filtered(`a${output}b`)).toBe('ab');
    // Also byte by byte.
    const filter = new TerminalFilter();
    const parts = [...Buffer.from(`a${output}b`)].map((byte) => filter.filter(Uint8Array.of(byte)));
    expect(parts.join('')).toBe('ab');
  });

  it.each([
    ['text of any language', 'ü ✓ 漢字 🚢\r\n\ttext\b\x07'],
    ['colours', '\x1b[1;38;2;1;2;3mred\x1b[4:3m\x1b[0m'],
    ['movement and erasing', '\x1b[2J\x1b[3;4H\x1b[K\x1b[?25l\x1b[5;6r\x1bM\x1b7\x1b8\x1b[2 q'],
    ['questions with fixed answers', '\x1b[6n\x1b[c\x1b[>c\x1b[?u\x1b[?2026$p\x1b]11;?\x1b\\'],
    ['character sets', '\x1b(0lqk\x1b(B'],
    ['titles and links', '\x1b]2;title\x1b\\\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\'],
  ])('passes %s', (_, output) => {
    expect(filtered(output)).toBe(output);
    const filter = new TerminalFilter();
    expect([...Buffer.from(output)].map((byte) => filter.filter(Uint8Array.of(byte))).join('')).toBe(output);
  });

  it('keeps the allowed part of combined modes, and of sequences that are interrupted', () => {
    expect(filtered('\x1b[?3;25;1000h')).toBe('\x1b[?25h\x1b[?1000h');
    expect(filtered('\x1b[31\x1b[32mgreen')).toBe('\x1b[32mgreen');
    expect(filtered('\x1b[3\n1mred')).toBe('\n\x1b[31mred');
    expect(filtered('\x1b]0;title\x1b[31mred')).toBe('\x1b[31mred');
    expect(filtered('\x1b[3\x18text')).toBe('\x18text');
  });

  it('buffers little, however long a sequence is', () => {
    const filter = new TerminalFilter();
    for (const start of ['\x1b]0;', '\x1bP', '\x1b[', '\x1b((']) {
      expect(filter.filter(Buffer.from(start + '0'.repeat(100_000))).length).toBeLessThan(100_000);
      expect(JSON.stringify(filter).length).toBeLessThan(10_000);
      filter.filter(Buffer.from('\x18'));
    }
  });
});
