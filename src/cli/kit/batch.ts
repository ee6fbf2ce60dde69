// The same work for several services at once: progress while it goes on, a line for each that is done, the reason for each
// that failed, and one exit code.
import { isBerthError } from '../../client/errors.ts';
import type { CommandContext } from './context.ts';
import { exitCodeOf } from './exit_codes.ts';
import { createProgress, type Progress } from './progress.ts';
import { sanitize } from './sanitize.ts';

/** What came of the work on one of them. */
export interface BatchResult {
  /** What --json prints. */
  record: object;
  /** What a person reads, after the name. */
  text: string;
  /** It was so already. */
  isUnchanged?: boolean;
}

export interface BatchTask {
  progress: Progress;
  /** Says what `name` is waiting for now. */
  onWaiting: (about: string) => void;
}

const hintOf = (error: unknown): string =>
  error instanceof Error && 'hint' in error && typeof error.hint === 'string' ? error.hint : '';

/** The message of an error with its hint, indented below. */
function failureText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return [
    message,
    ...hintOf(error)
      .split('\n')
      .filter((line) => line !== ''),
  ]
    .map(sanitize)
    .join('\n    ');
}

function errorRecord(error: unknown): object {
  if (isBerthError(error)) return error.toJSON();
  return {
    code: 'failed',
    message: error instanceof Error ? error.message : String(error),
    hint: hintOf(error),
  };
}

/** Collects what is done and what failed over the run of one command, and prints it as it comes. */
export function batchReporter(context: CommandContext, progress: Progress) {
  const records: object[] = [];
  let exitCode: number | undefined;
  const { out } = context;
  return {
    done: (name: string, { record, text, isUnchanged }: BatchResult): void => {
      records.push(record);
      const mark = isUnchanged ? out.style('dim', '·') : out.style('green', '✓');
      if (out.format === 'jsonl') out.line(JSON.stringify(record));
      else if (!out.isData) progress.print(() => out.line(`${mark} ${name} ${sanitize(text)}`));
    },
    failed: (name: string, error: unknown): void => {
      exitCode ??= exitCodeOf(error);
      const mark = out.style('red', '✗', 'err');
      const text = out.isData
        ? JSON.stringify({ name, ...errorRecord(error) })
        : `${mark} ${name}: ${failureText(error)}`;
      progress.print(() => out.errorLine(text));
    },
    /** The exit code; with -o json this is where the list is printed. */
    end: (): number | undefined => {
      progress.stop();
      if (out.format === 'json') out.line(JSON.stringify(records, null, 2));
      return exitCode;
    },
  };
}

/**
 * Does `work` for all `names` at once. `interrupted` says what becomes of those that are under way when Ctrl-C ends the
 * command: the daemon goes on with what it was asked.
 */
export async function runBatch(
  context: CommandContext,
  names: readonly string[],
  about: string,
  work: (name: string, work: BatchTask) => Promise<BatchResult>,
  interruptNote?: (names: string[]) => string,
): Promise<number | undefined> {
  const progress = createProgress(context.out);
  const report = batchReporter(context, progress);
  const open = new Set(names);
  const removeInterrupt = context.onInterrupt(() => {
    progress.stop();
    if (interruptNote && open.size > 0) context.out.note(interruptNote([...open]));
  });
  await Promise.all(
    [...open].map(async (name) => {
      progress.begin(name, about);
      const outcome = await work(name, {
        progress,
        onWaiting: (text) => progress.update(name, text),
      }).then(
        (done) => ({ done }),
        (error: unknown) => ({ error }),
      );
      open.delete(name);
      progress.end(name);
      if ('done' in outcome) report.done(name, outcome.done);
      else report.failed(name, outcome.error);
    }),
  );
  removeInterrupt();
  return report.end();
}
