// Finds the stack for a command, and resolves short names in it: docs/reference.md "Stacks".
import { existsSync, realpathSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { Client } from '../../client/create_client.ts';
import type { Service, Stack } from '../../client/records.ts';
import { findProjectFile } from '../../project/find_project_file.ts';
import { isHook, nameInStack, projectOfStack, shortName, slugText } from '../../protocol/stacks.ts';
import { flagOption, textOption } from './command.ts';
import { hasErrorCode } from './context.ts';
import { CommandError } from './exit_codes.ts';

/** The options that choose a stack. Commands whose `-p` is a port take only `--project`. */
export const STACK_OPTIONS = {
  stack: textOption('--stack <name>', 'the stack; default: the one of this folder (BERTH_STACK)', 'stack'),
  project: textOption('-p, --project <name>', 'the project, or a stack of it as <name>/<slug>', 'stack'),
};

/** The options of commands that can go beyond one stack. */
export const SCOPE_OPTIONS = {
  ...STACK_OPTIONS,
  all: flagOption('-A, --all', 'all stacks and services; names are the registered ones'),
};

export interface StackChoice {
  stack?: string | undefined;
  project?: string | undefined;
  all?: boolean;
  /** The named stack need not exist. */
  mayBeNew?: boolean;
  /** The folder of the project; default: the search starts in the current folder. */
  folder?: string;
}

/** The stack name for `--project NAME[/SLUG]`. */
export const stackOfProject = (project: string): string => project.replace('/', '--');

/** All stacks; null if the daemon does not support stacks or does not allow listing them. */
async function knownStacks(client: Pick<Client, 'stacks'>): Promise<Stack[] | null> {
  try {
    return await client.stacks();
  } catch (error) {
    // A token for one terminal may not list stacks.
    if (hasErrorCode(error, 'not_found') || hasErrorCode(error, 'forbidden_token')) return null;
    throw error;
  }
}

const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : path);

/** The folder of the project file for this folder; undefined if there is none. */
function projectFolder(): string | undefined {
  const { found: file } = findProjectFile(process.cwd());
  return file === undefined ? undefined : dirname(realPath(file));
}

/** The stack of the project `folder`; without one, the stack whose folder contains the current folder. */
function stackAround(stacks: readonly Stack[], folder: string | undefined): Stack | undefined {
  const made = stacks.filter(({ named }) => !named);
  if (folder !== undefined) return made.find(({ path }) => path === folder);
  const here = realPath(process.cwd()) + sep;
  return made
    .filter(({ path }) => path !== null && here.startsWith(path + sep))
    .sort((a, b) => (b.path ?? '').length - (a.path ?? '').length)[0];
}

/** Stands for the stack of a project that is not registered yet; no stack has this name. */
export const UNREGISTERED = '.';

/**
 * Finds the stack `named` in `stacks`: by its name, by its slug in `project`, or by a slug that only one
 * stack has; undefined if none matches. Throws a CommandError if several match.
 */
function stackCalled(
  named: string,
  stacks: readonly Stack[],
  project: string | undefined,
): string | undefined {
  const slug = slugText(named);
  const names = project === undefined ? [named] : [named, nameInStack(project, slug)];
  const known = names.find((name) => stacks.some((one) => one.name === name));
  if (known !== undefined) return known;
  const alike = stacks.filter((one) => one.slug === slug).map(({ name }) => name);
  if (alike.length < 2) return alike[0];
  throw new CommandError(`${named} may be ${alike.join(' or ')}`, 'Give the whole name.');
}

/**
 * The chosen stack; null for no stack, where names are the registered ones. Throws a CommandError if a named
 * stack does not exist.
 */
export async function chosenStack(
  client: Pick<Client, 'stacks'>,
  choice: StackChoice,
): Promise<string | null> {
  if (choice.all) return null;
  const stacks = await knownStacks(client);
  const folder = choice.folder ?? projectFolder();
  const around = stackAround(stacks ?? [], folder);
  const given = choice.stack ?? (process.env['BERTH_STACK'] || undefined);
  const named = choice.project === undefined ? given : stackOfProject(choice.project);
  if (named === undefined) return around?.name ?? (folder === undefined ? null : UNREGISTERED);
  if (stacks === null) return named;
  const project = choice.project === undefined && around ? projectOfStack(around.name) : undefined;
  const found = stackCalled(named, stacks, project);
  if (found !== undefined) return found;
  if (choice.mayBeNew) return project === undefined ? named : nameInStack(project, slugText(named));
  throw new CommandError(`there is no stack ${named}`, '`berth stacks` lists the stacks.');
}

export interface StackScope {
  /** null: names are the registered ones. */
  stack: string | null;
  /** Whether a service is in the scope; only the scope of all services includes hooks. */
  has(service: Pick<Service, 'stack' | 'service'>): boolean;
  /** The registered name for `name`: in this stack if it has such a service, otherwise `name` itself. */
  full(name: string): string;
  /** The name by which this scope shows the registered `name`. */
  label(name: string): string;
  /** The registered name of the group called `name` in this scope. */
  group(name: string): string;
}

/** The scope of a stack with the services `registered`. */
export function scopeOf(stack: string | null, registered: readonly Service[]): StackScope {
  const names = new Set(registered.map(({ name }) => name));
  const groups = new Set(registered.map(({ group }) => group));
  const inStack = (name: string, known: ReadonlySet<string | null>): string => {
    const whole = stack === null ? name : nameInStack(stack, name);
    return known.has(whole) ? whole : name;
  };
  return {
    stack,
    has: (one) =>
      stack === null || (one.stack === (stack === UNREGISTERED ? null : stack) && !isHook(one.service)),
    full: (name) => inStack(name, names),
    label: (name) => (stack === null ? name : (shortName(name, stack) ?? name)),
    group: (name) => inStack(name, groups),
  };
}

/** The scope for `choice`; requests the services only if names may be short. */
export async function stackScope(client: Client, choice: StackChoice): Promise<StackScope> {
  const stack = await chosenStack(client, choice);
  return scopeOf(stack, stack === null || stack === UNREGISTERED ? [] : await client.services());
}
