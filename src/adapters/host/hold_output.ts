// Keeps output from being lost while there is no process host. The system discards the contents of a FIFO
// once no process has it open, so a service that ends between two hosts would lose its last lines.
import { closeSync, constants, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const { O_NONBLOCK, O_RDONLY } = constants;

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

/** Opens every FIFO in `folder` without reading. Returns a function that closes them. */
export function holdOutput(folder: string): () => void {
  const held = namesIn(folder).flatMap((name) => openQuietly(join(folder, name)));
  return () => {
    for (const fd of held.splice(0)) closeSync(fd);
  };
}
