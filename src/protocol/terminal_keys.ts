// The keys of a terminal by name, and the bytes that each one types: docs/reference.md "Keys".

/** Keys that send the same bytes in every mode. */
const PLAIN: ReadonlyMap<string, string> = new Map([
  ['Enter', '\r'],
  ['Tab', '\t'],
  ['BTab', '\x1b[Z'],
  ['S-Tab', '\x1b[Z'],
  ['Escape', '\x1b'],
  ['Esc', '\x1b'],
  ['Space', ' '],
  ['Backspace', '\x7f'],
  ['BSpace', '\x7f'],
  ['C-Space', '\0'],
]);
/** Final letters of cursor keys: `ESC [ A`, or `ESC O A` where the program asks for it. */
const CURSOR: ReadonlyMap<string, string> = new Map([
  ['Up', 'A'],
  ['Down', 'B'],
  ['Right', 'C'],
  ['Left', 'D'],
  ['Home', 'H'],
  ['End', 'F'],
]);
/** Final letters of keys that are `ESC O P` without a modifier. */
const FUNCTION: ReadonlyMap<string, string> = new Map([
  ['F1', 'P'],
  ['F2', 'Q'],
  ['F3', 'R'],
  ['F4', 'S'],
]);
/** Numbers of keys that are `ESC [ 3 ~`. */
const NUMBERED: ReadonlyMap<string, number> = new Map([
  ['Insert', 2],
  ['IC', 2],
  ['Delete', 3],
  ['DC', 3],
  ['PageUp', 5],
  ['PgUp', 5],
  ['PPage', 5],
  ['PageDown', 6],
  ['PgDn', 6],
  ['NPage', 6],
  ['F5', 15],
  ['F6', 17],
  ['F7', 18],
  ['F8', 19],
  ['F9', 20],
  ['F10', 21],
  ['F11', 23],
  ['F12', 24],
]);
/** The value of each modifier; the sum plus 1 is the parameter sent. */
const MODIFIERS: Readonly<Record<string, number>> = { S: 1, M: 2, C: 4 };
const SHIFT = 1;
const ALT = 2;
const CONTROL = 4;

/** The letter typed with Control; null: there is no such key. */
function controlCharacter(letter: string): string | null {
  const code = letter.toUpperCase().charCodeAt(0);
  if (letter === '?') return '\x7f';
  return letter.length === 1 && code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : null;
}

/** One character with modifiers; null: there is no such key. Shift is in the character itself. */
function characterBytes(character: string, modifiers: number): string | null {
  if ([...character].length !== 1 || character < ' ' || character === '\x7f' || modifiers & SHIFT)
    return null;
  const typed = modifiers & CONTROL ? controlCharacter(character) : character;
  return typed === null ? null : `${modifiers & ALT ? '\x1b' : ''}${typed}`;
}

function namedBytes(name: string, modifiers: number, isApplication: boolean): string | null {
  const plain = PLAIN.get(name);
  if (plain !== undefined) return modifiers === ALT ? `\x1b${plain}` : modifiers === 0 ? plain : null;
  const cursor = CURSOR.get(name);
  const letter = cursor ?? FUNCTION.get(name);
  const isShort = cursor === undefined || isApplication;
  if (letter !== undefined)
    return modifiers > 0 ? `\x1b[1;${modifiers + 1}${letter}` : `\x1b${isShort ? 'O' : '['}${letter}`;
  const number = NUMBERED.get(name);
  if (number === undefined) return null;
  return modifiers > 0 ? `\x1b[${number};${modifiers + 1}~` : `\x1b[${number}~`;
}

/**
 * The bytes that `key` types: a name such as `Down`, or a character, with `C-`, `M-` and `S-` before it; null
 * for an unknown key. `isApplication`: the program has asked for the other form of cursor keys.
 */
export function keyBytes(key: string, isApplication = false): string | null {
  const whole = PLAIN.get(key);
  if (whole !== undefined) return whole;
  let name = key;
  let modifiers = 0;
  for (;;) {
    const added = name[1] === '-' && name.length > 2 ? MODIFIERS[name[0] ?? ''] : undefined;
    if (added === undefined) break;
    modifiers |= added;
    name = name.slice(2);
  }
  return characterBytes(name, modifiers) ?? namedBytes(name, modifiers, isApplication);
}

/** Whether the bytes of `key` depend on the mode of the terminal. */
export const isCursorKey = (key: string): boolean => CURSOR.has(key);
