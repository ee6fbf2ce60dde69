// Does the same work for several services at once: shows progress, prints a line per result, and sets one
// exit code.
import { isBerthError } from '../../client/errors.ts';
import type { CommandContext } from './context.ts';
import { hintOf } from './error_hints.ts';
import { exitCodeOf } from './exit_codes.ts';
import { createProgress, type Progress } from './progress.ts';
import { safeJson, sanitize } from './sanitize.ts';
import type { StackScope } from './stack_scope.ts';
import { untilDone } from './standard_streams.ts';

/** The result for one service. */
export interface BatchResult {
  /** Printed by --json. */
  record: object;
  /** Printed for people, after the name. */
  text: string;
  /** The service was already in this state. */
  isUnchanged?: boolean;
  /** The process that it already has is one of an earlier registration. */
  isOutdated?: boolean;
  /** The process of a started service that has no ready-check. */
  uncheckedPid?: number | null;
}

export interface BatchTask {
  progress: Progress;
  /** Shows what the service is waiting for. */
  onWaiting: (about: string) => void;
}

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

/** How names are shown; default: unchanged. */
export type NameLabels = Partial<Pick<StackScope, 'label'>>;

const asItIs = (name: string): string => name;

/** `text` with the stack's prefix removed from names: the daemon writes names as they are registered. */
function withLabels(text: string, name: string, shown: string): string {
  const prefix = name.endsWith(shown) ? name.slice(0, name.length - shown.length) : '';
  return prefix === '' ? text : text.replaceAll(prefix, '');
}

/** Prints the results and failures of one command as they arrive. */
export function batchReporter(
  context: CommandContext,
  progress: Progress,
  { label = asItIs }: NameLabels = {},
) {
  const records: object[] = [];
  let exitCode: number | undefined;
  const { out } = context;
  return {
    done: (name: string, { record, text, isUnchanged }: BatchResult): void => {
      records.push(record);
      const mark = isUnchanged ? out.style('dim', '·') : out.style('green', '✓');
      if (out.format === 'jsonl') out.line(safeJson(record));
      else if (!out.isData) progress.print(() => out.line(`${mark} ${label(name)} ${sanitize(text)}`));
    },
    failed: (name: string, error: unknown): void => {
      exitCode ??= exitCodeOf(error);
      const mark = out.style('red', '✗', 'err');
      const text = out.isData
        ? safeJson({ name, ...errorRecord(error) })
        : `${mark} ${label(name)}: ${withLabels(failureText(error), name, label(name))}`;
      progress.print(() => out.errorLine(text));
    },
    /** Stops the progress and, with -o json, prints the list. Returns the exit code of the first failure. */
    end: (): number | undefined => {
      progress.stop();
      if (out.format === 'json') out.line(safeJson(records, 2));
      return exitCode;
    },
  };
}

/** The registered names of services, and how they are shown. */
export interface NamedServices extends NameLabels {
  names: readonly string[];
}

/**
 * Does `work` for all `names` at once and returns the exit code. When Ctrl-C ends the command, the daemon
 * still completes the requests; `interruptNote` makes the note about that for the unfinished names.
 */
export async function runBatch(
  context: CommandContext,
  { names, ...labels }: NamedServices,
  about: string,
  work: (name: string, work: BatchTask) => Promise<BatchResult>,
  interruptNote?: (names: string[]) => string,
): Promise<number | undefined> {
  const progress = createProgress(context.out);
  const report = batchReporter(context, progress, labels);
  const { label = asItIs } = labels;
  const open = new Set(names);
  const removeInterrupt = context.onInterrupt(() => {
    progress.stop();
    if (interruptNote && open.size > 0) context.out.note(interruptNote([...open].map(label)));
  });
  const one = async (name: string): Promise<void> => {
    progress.begin(label(name), about);
    const onWaiting = (text: string): void => progress.update(label(name), text);
    const outcome = await work(name, { progress, onWaiting }).then(
      (done) => ({ done }),
      (error: unknown) => ({ error }),
    );
    open.delete(name);
    progress.end(label(name));
    if ('done' in outcome) report.done(name, outcome.done);
    else report.failed(name, outcome.error);
  };
  await untilDone(() => Promise.all([...open].map(one)));
  removeInterrupt();
  return report.end();
}
