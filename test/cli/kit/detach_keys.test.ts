// docs/reference.md "Attach on the command line": the keys that leave.
import { expect, it } from 'vitest';
import { DEFAULT_DETACH_KEYS, DetachMatcher, parseDetachKeys } from '../../../src/cli/kit/detach_keys.ts';

/** What reaches the program of `chunks`, up to the one with which the user leaves, if any. */
function typed(keys: string, chunks: readonly string[]): { typed: string; isLeaving: boolean } {
  const matcher = new DetachMatcher(parseDetachKeys(keys));
  let text = '';
  for (const chunk of chunks) {
    const taken = matcher.take(Buffer.from(chunk, 'latin1'));
    text += taken.typed.toString('latin1');
    if (taken.isLeaving) return { typed: text, isLeaving: true };
  }
  return { typed: text, isLeaving: false };
}

it('detach keys are written as in Docker', () => {
  expect(DEFAULT_DETACH_KEYS.text).toBe('Ctrl-]');
  expect(parseDetachKeys('ctrl-p,Ctrl-Q,x,-').text).toBe('Ctrl-P Ctrl-Q x -');
  for (const wrong of ['', 'ctrl-', 'ctrl-1', 'ctrl', 'alt-x', 'ctrl-p,', 'é', ' '])
    expect(() => parseDetachKeys(wrong), wrong).toThrow('must be a key such as ctrl-q');
});

it.each([
  ['a byte', '\x1d'],
  ['kitty', '\x1b[93;5u'],
  ['kitty with the locks', '\x1b[93;197u'],
  ['kitty with the event, other codes and text', '\x1b[93:125;5:1;29u'],
  ['kitty, whose key repeats', '\x1b[93;5:2u'],
  ['xterm', '\x1b[27;5;93~'],
])('the detach key is recognized as encoded by %s', (_, key) => {
  expect(typed('ctrl-]', [`ab${key}cd`])).toEqual({ typed: 'ab', isLeaving: true });
});

it('no other key detaches', () => {
  const others =
    ']\x1b[93u\x1b[93;5:3u\x1b[93;6u\x1b[94;5u\x1b[27;6;93~\x1b[A\x1b[3~\x1b[1;5C\x1b\x1b[\xff\x00';
  expect(typed('ctrl-]', [others])).toEqual({ typed: others, isLeaving: false });
});

it('the first keys of a detach sequence are held back until the next ones decide', () => {
  expect(typed('ctrl-p,ctrl-q', ['a\x10', '\x11'])).toEqual({ typed: 'a', isLeaving: true });
  expect(typed('ctrl-p,ctrl-q', ['a\x10', 'b\x11'])).toEqual({ typed: 'a\x10b\x11', isLeaving: false });
  expect(typed('ctrl-p,ctrl-q', ['\x10\x10', '\x11'])).toEqual({ typed: '\x10', isLeaving: true });
  expect(typed('a,a,b', ['aaa', 'b'])).toEqual({ typed: 'a', isLeaving: true });
  const released = ['\x1b[112;5u', '\x1b[112;5:3u', '\x1b[113;5u'];
  expect(typed('ctrl-p,ctrl-q', released)).toEqual({ typed: '', isLeaving: true });
});
