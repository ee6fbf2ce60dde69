// The same work for several services at once: progress while it goes on, a line for each that is done, the reason for each
// that failed, and one exit code.
import { isBerthError } from '../client/errors.ts';
import type { Cli } from './cli.ts';
import { exitCodeOf } from './exit.ts';
import { plain } from './plain.ts';
import { type Progress, progress } from './progress.ts';

/** What came of the work on one of them. */
export interface Done {
  /** What --json prints. */
  record: object;
  /** What a person reads, after the name. */
  text: string;
  /** It was so already. */
  isSame?: boolean;
}

export interface Work {
  shown: Progress;
  /** Says what `name` is waiting for now. */
  tell: (about: string) => void;
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
    .map(plain)
    .join('\n    ');
}

function errorBody(error: unknown): object {
  if (isBerthError(error)) return error.toJSON();
  return {
    code: 'failed',
    message: error instanceof Error ? error.message : String(error),
    hint: hintOf(error),
  };
}

/** Collects what is done and what failed over the run of one command, and prints it as it comes. */
export function reporter(cli: Cli, shown: Progress) {
  const records: object[] = [];
  let exitCode: number | undefined;
  const { out } = cli;
  return {
    done: (name: string, { record, text, isSame }: Done): void => {
      records.push(record);
      const mark = isSame ? out.style('dim', '·') : out.style('green', '✓');
      if (out.format === 'jsonl') out.line(JSON.stringify(record));
      else if (!out.isData) shown.print(() => out.line(`${mark} ${name} ${plain(text)}`));
    },
    failed: (name: string, error: unknown): void => {
      exitCode ??= exitCodeOf(error);
      const mark = out.style('red', '✗', 'err');
      const text = out.isData
        ? JSON.stringify({ name, ...errorBody(error) })
        : `${mark} ${name}: ${failureText(error)}`;
      shown.print(() => out.say(text));
    },
    /** The exit code; with -o json this is where the list is printed. */
    end: (): number | undefined => {
      shown.stop();
      if (out.format === 'json') out.line(JSON.stringify(records, null, 2));
      return exitCode;
    },
  };
}

/**
 * Does `work` for all `names` at once. `interrupted` says what becomes of those that are under way when Ctrl-C ends the
 * command: the daemon goes on with what it was asked.
 */
export async function forEach(
  cli: Cli,
  names: readonly string[],
  about: string,
  work: (name: string, work: Work) => Promise<Done>,
  interrupted?: (names: string[]) => string,
): Promise<number | undefined> {
  const shown = progress(cli.out);
  const report = reporter(cli, shown);
  const open = new Set(names);
  const off = cli.onInterrupt(() => {
    shown.stop();
    if (interrupted && open.size > 0) cli.out.note(interrupted([...open]));
  });
  await Promise.all(
    [...open].map(async (name) => {
      shown.begin(name, about);
      const outcome = await work(name, { shown, tell: (text) => shown.update(name, text) }).then(
        (done) => ({ done }),
        (error: unknown) => ({ error }),
      );
      open.delete(name);
      shown.end(name);
      if ('done' in outcome) report.done(name, outcome.done);
      else report.failed(name, outcome.error);
    }),
  );
  off();
  return report.end();
}
