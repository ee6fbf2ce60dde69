// stdout and stderr, each made when it is first written to: making one costs a command milliseconds.
import { EXIT } from './exit.ts';

const made = new Set<NodeJS.WriteStream>();

/** A reader that has seen enough (head, less) is no error: the command ends quietly. */
function quiet(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (made.has(stream)) return stream;
  made.add(stream);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT.ok);
  });
  return stream;
}

export const stdout = (): NodeJS.WriteStream => quiet(process.stdout);
export const stderr = (): NodeJS.WriteStream => quiet(process.stderr);
