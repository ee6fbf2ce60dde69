// stdout and stderr, each opened at its first use: opening one takes milliseconds.
import { writeSync } from 'node:fs';
import { EXIT_CODE } from './exit_codes.ts';

function tryWrite(fd: number, text: string): void {
  try {
    writeSync(fd, text);
  } catch {
    // Nobody can be told.
  }
}

const handledStreams = new Set<NodeJS.WriteStream>();

/**
 * Ends the command quietly when the reader of a pipe has closed it, as head and less do, and with one line
 * where nothing can be written, as on a full disk.
 */
function endOnBrokenPipe(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (handledStreams.has(stream)) return stream;
  handledStreams.add(stream);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT_CODE.ok);
    if (error.code === undefined) throw error;
    // Not by the stream: it may be the one that fails.
    tryWrite(2, `berth: the output cannot be written: ${error.message}\n`);
    process.exit(EXIT_CODE.failed);
  });
  return stream;
}

export const stdout = (): NodeJS.WriteStream => endOnBrokenPipe(process.stdout);
export const stderr = (): NodeJS.WriteStream => endOnBrokenPipe(process.stderr);
