// stdout and stderr, each opened at its first use: opening one takes milliseconds.
import { writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sizeInWindow } from '../../protocol/terminal.ts';
import { EXIT_CODE } from './exit_codes.ts';

function tryWrite(fd: number, text: string): void {
  try {
    writeSync(fd, text);
  } catch {
    // There is no other place to report the failure.
  }
}

/** Ends the process by SIGHUP. On process.exit Node resets the terminal, and crashes if that is gone. */
export function hangUp(): void {
  process.removeAllListeners('SIGHUP');
  process.kill(process.pid, 'SIGHUP');
}

const handledStreams = new Set<NodeJS.WriteStream>();

const IS_FINISHING = Symbol.for('berth.isFinishing');
/** Shared by the copies of this module: each file of commands that is loaded on demand has one. */
const shared = globalThis as { [IS_FINISHING]?: boolean };

/**
 * Performs `work`, which makes changes one after the other. It is done to its end although the reader of its
 * output closes the pipe, as head and grep -q do: half of the services would be started otherwise.
 */
export async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  shared[IS_FINISHING] = true;
  try {
    return await work();
  } finally {
    // The error of what was written last comes a turn later, and must not decide about the exit code.
    await nextTurn();
    shared[IS_FINISHING] = false;
  }
}

/**
 * Ends the command silently if the reader of a pipe closes it, as head and less do, or the terminal is gone,
 * and with one line if writing fails, as on a full disk.
 */
function endOnBrokenPipe(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (handledStreams.has(stream)) return stream;
  handledStreams.add(stream);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' && shared[IS_FINISHING]) return;
    if (error.code === 'EPIPE') process.exit(EXIT_CODE.ok);
    if (error.code === 'EIO' && stream.isTTY) return hangUp();
    if (error.code === undefined) throw error;
    // Writes directly to the descriptor: the stream may be the one that failed.
    tryWrite(2, `berth: the output cannot be written: ${error.message}\n`);
    process.exit(EXIT_CODE.failed);
  });
  return stream;
}

export const stdout = (): NodeJS.WriteStream => endOnBrokenPipe(process.stdout);
export const stderr = (): NodeJS.WriteStream => endOnBrokenPipe(process.stderr);

interface TerminalSize {
  columns: number;
  rows: number;
}

/** The size of a terminal; null if it has none, as some that no window shows. */
export const terminalSize = ({ columns, rows }: NodeJS.WriteStream): TerminalSize | null =>
  columns > 0 && rows > 0 ? { columns, rows } : null;

/** The size for the terminal of a program that is shown in that of `stream`; null: it is not known. */
export function programSize(stream: NodeJS.WriteStream): { cols: number; rows: number } | null {
  const size = terminalSize(stream);
  return size && sizeInWindow({ cols: size.columns, rows: size.rows });
}
