// Connects a command that runs in the daemon to those of its caller's stdin, stdout and stderr that are not
// terminals, by FIFOs in a private folder of the caller. Pipes and files keep their exact bytes and end.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  lstatSync,
  mkdtempSync,
  open,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { mayBeAlive } from '../../adapters/process/process_table.ts';

/** A plain descriptor: garbage collection closes that of a `FileHandle`. */
const openFile = promisify(open);

const STREAMS = [
  { name: 'stdin', fd: 0, sign: '<' },
  { name: 'stdout', fd: 1, sign: '>' },
  { name: 'stderr', fd: 2, sign: '2>' },
] as const;

/** Followed by the pid of the caller. */
const FOLDER_PREFIX = 'berth-run-';
const FOLDER_NAME = /^berth-run-(\d+)-/;

type StreamName = (typeof STREAMS)[number]['name'];

/** The caller's streams; those that are terminals are not redirected. */
export type CallerStreams = {
  readonly [N in StreamName]: (N extends 'stdin' ? Readable : Writable) & { isTTY?: boolean };
};

export interface RedirectedStreams {
  /** `cmd` with its redirections, for `/bin/sh -c`. */
  command(cmd: string): string;
  /** Copies the remaining output, for at most `ms` milliseconds, and removes the FIFOs. */
  end(ms: number): Promise<void>;
}

/**
 * Opens a FIFO once its other end is open, without blocking the event loop. If it were opened again, the end
 * of a writer that has gone meanwhile would not be reported.
 */
async function socketOf(path: string, isInput: boolean): Promise<Socket> {
  const fd = await openFile(path, isInput ? 'w' : 'r');
  return new Socket({ fd, readable: !isInput, writable: isInput });
}

const isBrokenPipe = (error: unknown): boolean =>
  ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Removes the FIFOs of commands that were killed before they could. */
function removeLeftFolders(): void {
  let names: string[] = [];
  try {
    names = readdirSync(tmpdir());
  } catch {
    // A folder for temporary files need not be readable.
  }
  for (const name of names) {
    const pid = FOLDER_NAME.exec(name)?.[1];
    if (pid !== undefined && !mayBeAlive(Number(pid), 0)) removeLeftFolder(join(tmpdir(), name));
  }
}

function removeLeftFolder(folder: string): void {
  try {
    const stat = lstatSync(folder);
    if (!stat.isDirectory() || stat.uid !== process.getuid?.()) return;
    for (const { name } of STREAMS) rmSync(join(folder, name), { force: true });
    rmdirSync(folder);
  } catch {
    // Another command has removed it, or it has files of somebody else.
  }
}

/** Redirects the streams of `caller` that are not terminals. Throws the system's error. */
export function redirectStreams(caller: CallerStreams): RedirectedStreams {
  const redirected = STREAMS.filter(({ name }) => !caller[name].isTTY);
  if (redirected.length === 0) return { command: (cmd) => cmd, end: async () => {} };
  removeLeftFolders();
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
  const pathOf = (name: StreamName): string => join(folder, name);
  execFileSync('mkfifo', ['-m', '600', ...redirected.map(({ name }) => pathOf(name))]);
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const over = new AbortController();
  const opened = new Set<StreamName>();
  const carry = async (name: StreamName): Promise<void> => {
    const socket = await socketOf(pathOf(name), name === 'stdin');
    opened.add(name);
    // Both ends of each FIFO are open, so the names are no longer needed. A killed command leaves no files.
    if (opened.size === redirected.length) remove();
    const { signal } = over;
    if (name === 'stdin') await pipeline(caller.stdin, socket, { signal });
    else await pipeline(socket, caller[name], { end: false, signal });
  };
  const carried = redirected.map(({ name }) =>
    carry(name).catch((error: unknown) => {
      // A reader on either side may close its end early.
      if (!over.signal.aborted && !isBrokenPipe(error)) throw error;
    }),
  );
  const outputs = carried.filter((_, index) => redirected[index]?.name !== 'stdin');
  return {
    command: (cmd) => {
      const signs = redirected.map(({ name, sign }) => `${sign}'${pathOf(name)}'`);
      return `{ ${cmd}\n} ${signs.join(' ')}`;
    },
    end: async (ms) => {
      if (over.signal.aborted) return;
      await Promise.race([Promise.all(outputs), pause(ms, undefined, { ref: false })]);
      over.abort();
      // If the command never started, its ends are not open. Opening them here ends the wait of `socketOf`.
      for (const { name } of redirected.filter((one) => !opened.has(one.name)))
        closeSync(openSync(pathOf(name), constants.O_RDWR | constants.O_NONBLOCK));
      remove();
    },
  };
}
