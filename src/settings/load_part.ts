// Loads parts of the program when they are first needed. While npm installs an update, the files of the
// package are missing or incomplete for some seconds.
import { setTimeout as pause } from 'node:timers/promises';

/** The pause before a part that does not load is tried again: docs/reference.md "Updates". */
export const LOAD_RETRY_MS = 500;
/** What needs a part that does not load for longer than this fails. An update takes a few seconds. */
export const LOAD_PATIENCE_MS = 30_000;

/** Those of Node for JavaScript and binaries, and that of src/build/natives.mjs for a missing package. */
const LOAD_ERRORS: readonly unknown[] = [
  'MODULE_NOT_FOUND',
  'ERR_MODULE_NOT_FOUND',
  'ERR_DLOPEN_FAILED',
  'ERR_PACKAGE_MISSING',
];

/** Whether `error` says that a file of the program is missing or does not load. */
export const isLoadError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && LOAD_ERRORS.includes(error.code);

/** Whether a file of the program was missing or incomplete for what reads it. */
const isFileError = (error: unknown): boolean =>
  isLoadError(error) ||
  error instanceof SyntaxError ||
  (error instanceof Error && 'code' in error && error.code === 'ENOENT');

/**
 * Calls `load` until the files of the program that it needs load. Rejects with its error if they have not for
 * LOAD_PATIENCE_MS, and with its other errors at once.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  const began = performance.now();
  for (;;) {
    try {
      return await load();
    } catch (error) {
      if (!isFileError(error) || performance.now() - began > LOAD_PATIENCE_MS) throw error;
      await pause(LOAD_RETRY_MS);
    }
  }
}
