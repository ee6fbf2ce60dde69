// What a command is: a description of its arguments and options, which gives its help, its completion and the types of what it
// is called with, and a function.
import { parseDuration } from '../../project/duration.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';

/** What can be offered on a Tab. */
export type CompletionSource =
  | 'service'
  | 'running'
  | 'stopped'
  | 'group'
  | 'agent'
  | 'cluster'
  | 'workload'
  | 'tether'
  | 'file'
  | readonly string[];

export interface Option<T> {
  /** As commander writes them: `-n, --lines <count>`. */
  flags: string;
  about: string;
  /** Turns the text into the value; throws a UsageError. Absent: a flag without a value. */
  parse?(text: string, before: T): T;
  defaultValue: T;
  completes?: CompletionSource;
}

export const flagOption = (flags: string, about: string): Option<boolean> => ({
  flags,
  about,
  defaultValue: false,
});

/** For a flag `--no-...`: true unless it is given. */
export const negatedFlagOption = (flags: string, about: string): Option<boolean> => ({
  flags,
  about,
  defaultValue: true,
});

export const textOption = (
  flags: string,
  about: string,
  completes?: CompletionSource,
): Option<string | undefined> => ({
  flags,
  about,
  parse: (value) => value,
  defaultValue: undefined,
  ...(completes ? { completes } : {}),
});

/** May be given several times, and each time with several values between commas. */
export const listOption = (flags: string, about: string, completes?: CompletionSource): Option<string[]> => ({
  flags,
  about,
  parse: (value, before) => [...before, ...value.split(',').filter((part) => part !== '')],
  defaultValue: [],
  ...(completes ? { completes } : {}),
});

/** May be given several times; commas belong to the value. */
export const repeatedOption = (flags: string, about: string): Option<string[]> => ({
  flags,
  about,
  parse: (value, before) => [...before, value],
  defaultValue: [],
});

export const choiceOption = <const C extends string>(
  flags: string,
  about: string,
  choices: readonly C[],
): Option<C | undefined> => ({
  flags,
  about: `${about} (${choices.join(', ')})`,
  defaultValue: undefined,
  completes: choices,
  parse: (value) => {
    const found = choices.find((one) => one === value);
    if (found === undefined) throw new UsageError(`must be one of ${choices.join(', ')}`);
    return found;
  },
});

export const integerOption = (
  flags: string,
  about: string,
  [from, to]: readonly [number, number],
): Option<number | undefined> => ({
  flags,
  about,
  defaultValue: undefined,
  parse: (value) => {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= from && number <= to) return number;
    throw new UsageError(`must be a number from ${from} to ${to}`);
  },
});

export const durationOption = (flags: string, about: string): Option<number | undefined> => ({
  flags,
  about,
  defaultValue: undefined,
  parse: (value) => {
    const ms = parseDuration(value);
    if (ms !== undefined) return ms;
    throw new UsageError('must be a duration such as 30s or 500ms; a bare number is milliseconds');
  },
});

type OptionTable = Record<string, Option<unknown>>;
type OptionValues<O extends OptionTable> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export interface Argument {
  /** As commander writes it: `<name>`, `[names...]`. */
  syntax: string;
  about: string;
  completes?: CompletionSource;
}

export interface CommandSpec<O extends OptionTable> {
  /** What the help says below the usage, in whole sentences. */
  about?: string;
  args?: readonly Argument[];
  options?: O;
  examples?: readonly (readonly [line: string, about: string])[];
  /** Resolves with the exit code; nothing is 0. */
  run(context: CommandContext, args: string[], options: OptionValues<O>): Promise<number | undefined>;
}

/** A command with the types of its options forgotten, as the dispatcher holds it. */
export interface Command extends Omit<CommandSpec<OptionTable>, 'run'> {
  run(context: CommandContext, args: string[], options: Record<string, unknown>): Promise<number | undefined>;
}

/** Describes a command; `run` gets its options with their types. */
export function defineCommand<const O extends OptionTable = Record<string, never>>(
  spec: CommandSpec<O>,
): Command {
  return {
    ...spec,
    // The dispatcher fills `options` from exactly these rows.
    run: (context, args, options) => spec.run(context, args, options as OptionValues<O>),
  };
}
