// stdout and stderr, each opened at its first use: opening one takes milliseconds.
import { EXIT_CODE } from './exit_codes.ts';

const handledStreams = new Set<NodeJS.WriteStream>();

/** Ends the command quietly when the reader of a pipe has closed it, as head and less do. */
function endOnBrokenPipe(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (handledStreams.has(stream)) return stream;
  handledStreams.add(stream);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT_CODE.ok);
  });
  return stream;
}

export const stdout = (): NodeJS.WriteStream => endOnBrokenPipe(process.stdout);
export const stderr = (): NodeJS.WriteStream => endOnBrokenPipe(process.stderr);
