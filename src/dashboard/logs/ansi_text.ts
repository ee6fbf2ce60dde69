// Colours in a line: SGR sequences become pieces of styled text. Other control characters become visible
// text.
import { visibleLine } from '../../presentation/format.ts';

/** A piece of a line with one style. */
export interface StyledText {
  text: string;
  /** CSS class names, separated by spaces. */
  classes: string;
  /** A colour that is not one of the theme's sixteen, as `rgb(…)`; '': none. */
  colour: string;
}

const SGR = /\x1b\[([0-9;:]{0,64})m/g;
const STEPS = [0, 95, 135, 175, 215, 255];

interface Look {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  struck: boolean;
  /** The number of one of the theme's sixteen colours; null: none of them. */
  front: number | null;
  colour: string;
}

const PLAIN: Look = {
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  struck: false,
  front: null,
  colour: '',
};

/** The change that each code without arguments makes. */
const CHANGES: ReadonlyMap<number, Partial<Look>> = new Map<number, Partial<Look>>([
  [0, PLAIN],
  [1, { bold: true }],
  [2, { dim: true }],
  [3, { italic: true }],
  [4, { underline: true }],
  [9, { struck: true }],
  [22, { bold: false, dim: false }],
  [23, { italic: false }],
  [24, { underline: false }],
  [29, { struck: false }],
  [39, { front: null, colour: '' }],
  ...Array.from({ length: 8 }, (_, at): [number, Partial<Look>] => [30 + at, { front: at, colour: '' }]),
  ...Array.from({ length: 8 }, (_, at): [number, Partial<Look>] => [90 + at, { front: 8 + at, colour: '' }]),
]);

/** The colour with a number above 15 in the palette of 256 colours. */
function paletteColour(index: number): string {
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const cube = index - 16;
  const part = (size: number): number => STEPS[Math.floor(cube / size) % 6] ?? 0;
  return `rgb(${part(36)} ${part(6)} ${part(1)})`;
}

const byte = (value: number | undefined): number => Math.min(255, Math.max(0, value ?? 0));

/** Removes the arguments of 38 or 48 from `codes`, and returns the change that 38 makes. */
function takeColour(codes: number[]): Partial<Look> {
  const kind = codes.shift();
  if (kind === 5) {
    const index = byte(codes.shift());
    return index < 16 ? { front: index, colour: '' } : { front: null, colour: paletteColour(index) };
  }
  if (kind !== 2) return {};
  const [red, green, blue] = codes.splice(0, 3).map(byte);
  return { front: null, colour: `rgb(${red ?? 0} ${green ?? 0} ${blue ?? 0})` };
}

function changed(look: Look, sequence: string): Look {
  const codes = sequence.split(/[;:]/).map(Number);
  let now = look;
  while (codes.length > 0) {
    const code = codes.shift() ?? 0;
    if (code === 38) now = { ...now, ...takeColour(codes) };
    // Ignores background colours, which would make a line hard to read.
    else if (code === 48) takeColour(codes);
    else now = { ...now, ...CHANGES.get(code) };
  }
  return now;
}

function classesOf({ bold, dim, italic, underline, struck, front }: Look): string {
  const names = [
    bold && 'a-bold',
    dim && 'a-dim',
    italic && 'a-italic',
    underline && 'a-underline',
    struck && 'a-struck',
    front !== null && `a-${front}`,
  ];
  return names.filter(Boolean).join(' ');
}

/** The pieces of a line. Control characters other than SGR are made visible. */
export function styledLine(line: string): StyledText[] {
  if (!line.includes('\x1b')) return [{ text: visibleLine(line), classes: '', colour: '' }];
  const pieces: StyledText[] = [];
  let look = PLAIN;
  let from = 0;
  const add = (to: number): void => {
    if (to > from)
      pieces.push({
        text: visibleLine(line.slice(from, to)),
        classes: classesOf(look),
        colour: look.colour,
      });
  };
  for (const match of line.matchAll(SGR)) {
    add(match.index);
    look = changed(look, match[1] ?? '');
    from = match.index + match[0].length;
  }
  add(line.length);
  return pieces;
}

/** A line without colours, with other control characters made visible. */
export const plainLine = (line: string): string => visibleLine(line.replace(SGR, ''));
