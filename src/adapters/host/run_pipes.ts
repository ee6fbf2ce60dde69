// The FIFOs of runs, as others than their host see them. While there is no process host, they are held open:
// the system discards the contents of a FIFO once no process has it open, so a service that ends between two
// hosts would lose its last lines.
import { closeSync, constants, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The descriptor of `path`, or none: the run may just have ended, and descriptors may have run out. */
function openQuietly(path: string): number[] {
  try {
    return [openSync(path, O_RDONLY | O_NONBLOCK)];
  } catch {
    return [];
  }
}

/** The names in `folder`; empty without the folder: the first host may have ended before creating it. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Whether no process has a FIFO open for reading, as each process of a run has those of the run. */
export function hasNoReader(path: string): boolean {
  try {
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK));
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENXIO';
  }
}

/** Whether processes of runs are left that have a FIFO in `folder`. No host reads these. */
export const haveRunsLeft = (folder: string): boolean =>
  namesIn(folder).some((name) => !hasNoReader(join(folder, name)));

/** Opens every FIFO in `folder` without reading. Returns a function that closes them. */
export function holdOutput(folder: string): () => void {
  const held = namesIn(folder).flatMap((name) => openQuietly(join(folder, name)));
  return () => {
    for (const fd of held.splice(0)) closeSync(fd);
  };
}
