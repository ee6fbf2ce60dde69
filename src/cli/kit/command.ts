// Defines a command: a function, and a description of its arguments and options. The help, the completions
// and the types of the options come from that description.
import { parseDuration } from '../../project/duration.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';

/** Where completions come from: names that the daemon or the project file lists, files, or fixed words. */
export type CompletionSource =
  | 'service'
  | 'running'
  | 'stopped'
  | 'group'
  | 'stack'
  | 'agent'
  | 'cluster'
  | 'workload'
  | 'tether'
  | 'project'
  | 'file'
  | readonly string[];

export interface Option<T> {
  /** In commander's syntax: `-n, --lines <count>`. */
  flags: string;
  about: string;
  /** Turns the text into the value; throws a UsageError. Absent for a flag. */
  parse?(text: string, before: T): T;
  defaultValue: T;
  completes?: CompletionSource;
}

/** A flag: false unless it is given. */
export const flagOption = (flags: string, about: string): Option<boolean> => ({
  flags,
  about,
  defaultValue: false,
});

/** For commands that an agent may use only on its own stack: see CommandContext.clientFor. */
export const FORCE_OPTIONS = {
  force: flagOption(
    '--force',
    'within an agent: also in another stack, with your token in BERTH_AUTH_TOKEN; it is an event',
  ),
};

/** A flag `--no-...`: true unless it is given. */
export const negatedFlagOption = (flags: string, about: string): Option<boolean> => ({
  flags,
  about,
  defaultValue: true,
});

/** A text, unchanged. */
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

/** The options of the commands that bin.ts runs as a server. */
export const SERVER_OPTIONS = {
  config: textOption(
    '--config <file>',
    'the configuration file; default $XDG_CONFIG_HOME/berth/config.toml',
    'file',
  ),
  stateDir: textOption('--state-dir <dir>', 'the state directory; default $XDG_STATE_HOME/berth', 'file'),
};

/** An option that may be repeated; each time it may list several values, separated by commas. */
export const listOption = (flags: string, about: string, completes?: CompletionSource): Option<string[]> => ({
  flags,
  about,
  parse: (value, before) => [...before, ...value.split(',').filter((part) => part !== '')],
  defaultValue: [],
  ...(completes ? { completes } : {}),
});

/** An option that may be repeated; a comma is part of the value. */
export const repeatedOption = (flags: string, about: string): Option<string[]> => ({
  flags,
  about,
  parse: (value, before) => [...before, value],
  defaultValue: [],
});

/** One of `choices`. */
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

/** An integer within a range, both ends included. */
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

/** A duration, in milliseconds. */
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

/** `word` as one of `actions`, the first argument of a command. Throws a UsageError that lists them. */
export function actionIn<const A extends string>(actions: readonly A[], word: string | undefined): A {
  const found = actions.find((action) => action === word);
  if (found === undefined) throw new UsageError(`${word} is none of ${actions.join(', ')}`);
  return found;
}

export interface Argument {
  /** In commander's syntax: `<name>`, `[names...]`. */
  syntax: string;
  about: string;
  completes?: CompletionSource;
}

export interface CommandSpec<O extends OptionTable> {
  /** The description in the help, in whole sentences. */
  about?: string;
  args?: readonly Argument[];
  options?: O;
  examples?: readonly (readonly [line: string, about: string])[];
  /** Resolves with the exit code; undefined is 0. */
  run(context: CommandContext, args: string[], options: OptionValues<O>): Promise<number | undefined>;
}

/** A command as the table stores it, without the types of its options. */
export interface Command extends Omit<CommandSpec<OptionTable>, 'run'> {
  run(context: CommandContext, args: string[], options: Record<string, unknown>): Promise<number | undefined>;
}

/** Defines a command whose `run` gets typed options. */
export function defineCommand<const O extends OptionTable = Record<string, never>>(
  spec: CommandSpec<O>,
): Command {
  return {
    ...spec,
    // The parser fills `options` from exactly these rows.
    run: (context, args, options) => spec.run(context, args, options as OptionValues<O>),
  };
}
