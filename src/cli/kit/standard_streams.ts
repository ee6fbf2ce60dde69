// stdout and stderr, each made when it is first written to: making one costs a command milliseconds.
import { EXIT_CODE } from './exit_codes.ts';

const handledStreams = new Set<NodeJS.WriteStream>();

/** A reader that has seen enough (head, less) is no error: the command ends quietly. */
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
