// A reserved file descriptor, so that a process that has used up all others can still see what is running.
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

const OUT_OF_DESCRIPTOR_CODES: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOMEM'];

/** Whether an error means that nothing can be opened, which says nothing about the file itself. */
export const isOutOfDescriptors = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && OUT_OF_DESCRIPTOR_CODES.includes(error.code);

/** A descriptor in reserve. */
export interface ReservedDescriptor {
  /** Frees the descriptor for `work`, which must be synchronous and open only one file at a time. */
  lend<R>(work: () => R): R;
}

/** Reserves a descriptor. Call it early, before all are used up. */
export function reserveDescriptor(): ReservedDescriptor {
  let held: number | null = null;
  const take = () => {
    try {
      held ??= openSync(devNull, 'r');
    } catch {
      // None is left; the next `lend` tries again.
    }
  };
  take();
  return {
    lend(work) {
      if (held !== null) closeSync(held);
      held = null;
      try {
        return work();
      } finally {
        take();
      }
    },
  };
}
