// A file descriptor in reserve, so that a process that has used up all of them can still see what runs.
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

const OUT_OF_DESCRIPTOR_CODES: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOMEM'];

/** Whether an error means that nothing can be opened, which says nothing about the file in question. */
export const isOutOfDescriptors = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && OUT_OF_DESCRIPTOR_CODES.includes(error.code);

/** A descriptor in reserve. */
export interface ReservedDescriptor {
  /** Runs `work`, which opens one file at a time and is synchronous, with the descriptor free for it. */
  lend<R>(work: () => R): R;
}

/** Reserves a descriptor. Call it early, before all are used up. */
export function reserveDescriptor(): ReservedDescriptor {
  let held: number | null = null;
  const take = () => {
    try {
      held ??= openSync(devNull, 'r');
    } catch {
      // None is left: the next `lend` tries again.
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
