// Output of programs that mean harm, or print what somebody else has written: single sequences, and random
// mixtures of them.

/** The seed of random output; set BERTH_FUZZ_SEED to repeat a run. */
export const FUZZ_SEED = Number(process.env['BERTH_FUZZ_SEED'] ?? Date.now() % 2 ** 31);

/** Numbers in [0, 1) that follow from the seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const ESC = '\x1b';
const NUMBERS = ['', '0', '1000', '32767', '2147483647', '4294967296', '99999999999999999999'];
const FINALS = [...'@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstuvwxyz{|}~'];
const MODES = [
  1, 3, 5, 6, 7, 9, 45, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1048, 1049, 2004, 2026,
];
const STRINGS = [']', 'P', '_', '^', 'X'];

/** The sequences, in latin1: each byte is one character. */
export function hostileSequences(): string[] {
  const long = 'A'.repeat(2_000);
  return [
    // Every CSI with counts far beyond any screen, after a character that could be repeated.
    ...FINALS.flatMap((final) => NUMBERS.slice(2, 5).map((count) => `x${ESC}[${count}${final}`)),
    ...FINALS.map((final) => `${ESC}[${NUMBERS.join(';')}${final}`),
    ...[' ', '!', '"', '$', "'", '*', '+'].flatMap((middle) =>
      [...'@A}~pqrtwxyz'].map((final) => `${ESC}[9999;9999${middle}${final}`),
    ),
    ...MODES.flatMap((mode) => [`${ESC}[?${mode}h`, `${ESC}[?${mode}l`]),
    // Regions, then scrolling inside them.
    `${ESC}[2;3r${ESC}[3H\n\n\n\n`,
    `${ESC}[1;2147483647r${ESC}M${ESC}D${ESC}E`,
    `${ESC}[?6h${ESC}[2147483647;2147483647H\n`,
    `${ESC}[?69h${ESC}[2;4s${ESC}[9999S`,
    // Strings that never end, end oddly, or hold other sequences.
    ...STRINGS.flatMap((start) => [
      `${ESC}${start}${long}`,
      `${ESC}${start}0;${long}\x07`,
      `${ESC}${start}1;${ESC}[2J${ESC}\\`,
    ]),
    ...[0, 2, 4, 8, 10, 11, 12, 50, 52, 104, 133, 777, 1337].map((code) => `${ESC}]${code};${long}${ESC}\\`),
    `${ESC}]8;;http://x/${long.slice(0, 100)}\x07link`,
    ...Array.from({ length: 10 }, (_, id) => `${ESC}]8;id=${id};http://x/${id}\x07y`),
    `${ESC}]4;${'1;?;'.repeat(500)}\x07`,
    `${ESC}[22;2t${ESC}]2;${long}\x07`,
    // Parameters without end, and parts of sequences.
    `${ESC}[${'1;'.repeat(500)}m`,
    `${ESC}[${'1:'.repeat(500)}m`,
    `${ESC}[38:2:${'9'.repeat(500)}m`,
    `${ESC}[`,
    ESC,
    '\x9b',
    '\x90',
    '\x9d',
    // Characters that combine, are wide, invalid, or turn the direction.
    'x\xcc\x81\xcc\x81\xcc\x81',
    `a${'\xcc\x81'.repeat(200)}${ESC}[9999b`,
    '\xf0\x9f\x91\xa8\xe2\x80\x8d',
    '\xef\xb8\x8f\xe2\x80\x8d',
    '\xff\xfe\xc0\x80',
    '\xed\xa0\x80',
    '\xe2\x80\xae',
    // Tabs, charsets, resets, wrapping.
    `${ESC}H\t`,
    `${ESC}[3g\t\t\t\t`,
    `${ESC}(0qqqq${ESC}(B`,
    `${ESC}#8`,
    `${ESC}c`,
    `${ESC}[!p`,
    '\b\b\b\b',
    '\x05\x07\x0e\x0f',
    `${ESC}7${ESC}8`,
    `${ESC}[4h${'i'.repeat(50)}`,
    `${ESC}[?1049h${ESC}[2J${ESC}[H${'z'.repeat(80)}`,
    '\n',
    '\r\n',
    'word ',
    '\0',
  ];
}

/** About `length` bytes of sequences, cuts of sequences, and bytes of any value. */
export function randomOutput(random: () => number, sequences: readonly string[], length: number): Buffer {
  const parts: string[] = [];
  const pick = (count: number): number => Math.floor(random() * count);
  for (let bytes = 0; bytes < length; ) {
    const sequence = sequences[pick(sequences.length)] ?? '';
    const kind = pick(4);
    const part =
      kind === 0
        ? String.fromCharCode(...Array.from({ length: 1 + pick(8) }, () => pick(256)))
        : kind === 1
          ? sequence.slice(pick(sequence.length))
          : sequence.replace(/\d+/, (digits) => (pick(2) === 0 ? String(pick(2 ** 31)) : digits));
    parts.push(part);
    bytes += part.length;
  }
  return Buffer.from(parts.join(''), 'latin1');
}
