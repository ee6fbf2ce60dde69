// What keeps a program's output from harming an emulator (xterm.js), in the daemon and in the page.

/** The screen of an emulator. */
interface Screen {
  readonly cols: number;
  readonly rows: number;
  readonly buffer: { readonly active: { readonly cursorX: number; readonly cursorY: number } };
}

/** The part of an emulator behind its public interface: the parser there hands out copies of parameters. */
interface Core {
  registerCsiHandler(
    id: { prefix?: string; final: string },
    handler: (sequence: { params: Int32Array }) => boolean,
  ): unknown;
}

/**
 * CSI sequences that the emulator repeats as often as their first parameter says, and the screen dimension
 * beyond which further repeats change nothing.
 */
const COUNTED = {
  '@': 'cols',
  I: 'cols',
  P: 'cols',
  X: 'cols',
  Z: 'cols',
  b: 'cols',
  L: 'rows',
  M: 'rows',
  S: 'rows',
  T: 'rows',
} as const;

/** Clamps repeat counts, which may be up to 2,147,483,647, so that no single sequence takes long. */
function clampCounts(screen: Screen, core: Core): void {
  for (const [final, side] of Object.entries(COUNTED))
    core.registerCsiHandler({ final }, ({ params }) => {
      params[0] = Math.max(0, Math.min(params[0] ?? 0, screen[side]));
      // Not handled here: the emulator's own handler follows, with the same parameters.
      return false;
    });
}

/** Erases the whole screen where it is erased up to its last cell: there, the emulator may throw. */
function eraseToTheEnd(screen: Screen, core: Core): void {
  for (const id of [{ final: 'J' }, { prefix: '?', final: 'J' }])
    core.registerCsiHandler(id, ({ params }) => {
      const { cursorX, cursorY } = screen.buffer.active;
      const isAtEnd = cursorY === screen.rows - 1 && cursorX >= screen.cols - 1;
      if (params[0] === 1 && isAtEnd) params[0] = 2;
      return false;
    });
}

/** Guards the emulator `terminal`, before it gets any output. */
export function guardTerminal(terminal: Screen): void {
  const core = (terminal as unknown as { _core: Core })._core;
  clampCounts(terminal, core);
  eraseToTheEnd(terminal, core);
}
