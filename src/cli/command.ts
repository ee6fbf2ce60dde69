// What a command is: a description of its arguments and options, which gives its help, its completion and the types of what it
// is called with, and a function.
import { parseDuration } from '../project/duration.ts';
import type { Cli } from './cli.ts';
import { UsageError } from './exit.ts';

/** What can be offered on a Tab. */
export type Completes =
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
  fallback: T;
  completes?: Completes;
}

export const flag = (flags: string, about: string): Option<boolean> => ({ flags, about, fallback: false });

/** For a flag `--no-...`: true unless it is given. */
export const unless = (flags: string, about: string): Option<boolean> => ({ flags, about, fallback: true });

export const text = (flags: string, about: string, completes?: Completes): Option<string | undefined> => ({
  flags,
  about,
  parse: (value) => value,
  fallback: undefined,
  ...(completes ? { completes } : {}),
});

/** May be given several times, and each time with several values between commas. */
export const list = (flags: string, about: string, completes?: Completes): Option<string[]> => ({
  flags,
  about,
  parse: (value, before) => [...before, ...value.split(',').filter((part) => part !== '')],
  fallback: [],
  ...(completes ? { completes } : {}),
});

/** May be given several times; commas belong to the value. */
export const texts = (flags: string, about: string): Option<string[]> => ({
  flags,
  about,
  parse: (value, before) => [...before, value],
  fallback: [],
});

export const choice = <const C extends string>(
  flags: string,
  about: string,
  choices: readonly C[],
): Option<C | undefined> => ({
  flags,
  about: `${about} (${choices.join(', ')})`,
  fallback: undefined,
  completes: choices,
  parse: (value) => {
    const found = choices.find((one) => one === value);
    if (found === undefined) throw new UsageError(`must be one of ${choices.join(', ')}`);
    return found;
  },
});

export const integer = (
  flags: string,
  about: string,
  [from, to]: readonly [number, number],
): Option<number | undefined> => ({
  flags,
  about,
  fallback: undefined,
  parse: (value) => {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= from && number <= to) return number;
    throw new UsageError(`must be a number from ${from} to ${to}`);
  },
});

export const duration = (flags: string, about: string): Option<number | undefined> => ({
  flags,
  about,
  fallback: undefined,
  parse: (value) => {
    const ms = parseDuration(value);
    if (ms !== undefined) return ms;
    throw new UsageError('must be a duration such as 30s or 500ms; a bare number is milliseconds');
  },
});

type Options = Record<string, Option<unknown>>;
type Values<O extends Options> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export interface Argument {
  /** As commander writes it: `<name>`, `[names...]`. */
  syntax: string;
  about: string;
  completes?: Completes;
}

export interface CommandSpec<O extends Options> {
  /** What the help says below the usage, in whole sentences. */
  about?: string;
  args?: readonly Argument[];
  options?: O;
  examples?: readonly (readonly [line: string, about: string])[];
  /** Resolves with the exit code; nothing is 0. */
  run(cli: Cli, args: string[], options: Values<O>): Promise<number | undefined>;
}

/** A command with the types of its options forgotten, as the dispatcher holds it. */
export interface Command extends Omit<CommandSpec<Options>, 'run'> {
  run(cli: Cli, args: string[], options: Record<string, unknown>): Promise<number | undefined>;
}

/** Describes a command; `run` gets its options with their types. */
export function command<const O extends Options = Record<string, never>>(spec: CommandSpec<O>): Command {
  return {
    ...spec,
    // The dispatcher fills `options` from exactly these rows.
    run: (cli, args, options) => spec.run(cli, args, options as Values<O>),
  };
}
