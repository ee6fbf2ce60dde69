// What a process does that has used up all the file descriptors it may have: it still has to see what runs.
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

const OUT_OF_DESCRIPTOR_CODES: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOMEM'];

/** Whether nothing could be opened any more: that says nothing of the file that was to be opened. */
export const isOutOfDescriptors = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && OUT_OF_DESCRIPTOR_CODES.includes(error.code);

/** A descriptor that is held back. */
export interface ReservedDescriptor {
  /** Runs `look`, which opens one file at a time and waits for nothing, with the descriptor free for it. */
  lend<R>(work: () => R): R;
}

/** To be called early: what is held back must be there before the rest is used up. */
export function reserveDescriptor(): ReservedDescriptor {
  let held: number | null = null;
  const take = () => {
    try {
      held ??= openSync(devNull, 'r');
    } catch {
      // Somebody else was faster: it is tried again after the next look.
    }
  };
  take();
  return {
    lend(look) {
      if (held !== null) closeSync(held);
      held = null;
      try {
        return look();
      } finally {
        take();
      }
    },
  };
}
