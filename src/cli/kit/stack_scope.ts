// Finds the stack for a command, and resolves short names in it: docs/reference.md "Stacks".
import { existsSync, realpathSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import type { Client } from '../../client/create_client.ts';
import type { Service, Stack } from '../../client/records.ts';
import { findProjectFile, realProjectFile } from '../../project/find_project_file.ts';
import { isHook } from '../../protocol/hooks.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { nameInStack, projectOfStack, shortName, stackNames } from '../../protocol/stacks.ts';
import { flagOption, type Option, textOption } from './command.ts';
import { hasErrorCode } from './context.ts';
import { CommandError, UsageError } from './exit_codes.ts';
import { givenName, namedStack, type ProjectPlace } from './named_stack.ts';

/** An empty name, as of an unset variable, must not stand for the stack of the folder. */
function nonEmpty(text: string): string {
  if (text.trim() !== '') return text;
  throw new UsageError('must not be empty');
}

/** The option that chooses a project. */
export const projectOption = (flags: string): Option<string | undefined> => ({
  ...textOption(flags, 'the project, or a stack of it as <name>/<slug>', 'stack'),
  parse: (text) => {
    for (const part of text.split('/')) nonEmpty(part);
    return text;
  },
});

/** The options that choose a stack. Commands whose `-p` is a port take only `--project`. */
export const STACK_OPTIONS = {
  stack: {
    ...textOption('--stack <name>', 'the stack; default: the one of this folder (BERTH_STACK)', 'stack'),
    parse: nonEmpty,
  },
  project: projectOption('-p, --project <name>'),
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
  /** It is a stack of the project at `place`, and need not exist. */
  isOwn?: boolean;
  /** The command ends the whole stack. */
  ends?: boolean;
  /** Where the project is; default: the search starts in the current folder. */
  place?: ProjectPlace;
}

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

/** The project of the nearest berth.yaml; undefined if there is none. */
function placeHere(): ProjectPlace | undefined {
  const { found } = findProjectFile(process.cwd());
  if (found === undefined) return undefined;
  const file = realProjectFile(found);
  const projectName = async () => (await import('./project_name.ts')).projectNameOfFile(file);
  return { folder: dirname(file), projectName };
}

/** The project of a folder without a berth.yaml. */
const placeWithoutFile = (folder: string): ProjectPlace => ({
  folder,
  projectName: async () => (await import('./project_name.ts')).projectNameIn(folder, null),
});

/** Whether the stack `name` can be that of `project` in `folder`. */
export const isStackOf = (name: string, project: string, folder: string): boolean =>
  stackNames({ project, path: folder, worktree: null }).includes(projectOfStack(name));

/** The project of another tool's file in the current folder. */
async function placeOfOtherTool(): Promise<ProjectPlace | undefined> {
  const folder = (await import('./project_name.ts')).folderOfOtherTool(process.cwd());
  return folder === undefined ? undefined : placeWithoutFile(folder);
}

/** The project in the nearest folder of one of `stacks` that contains the current folder. */
function placeAround(stacks: readonly Stack[]): ProjectPlace | undefined {
  const here = realPath(process.cwd()) + sep;
  const folders = stacks.flatMap(({ path }) => (path !== null && here.startsWith(path + sep) ? [path] : []));
  const [folder] = folders.sort((a, b) => b.length - a.length);
  return folder === undefined ? undefined : placeWithoutFile(folder);
}

/** The stack of `place`; without one, the stack whose folder contains the current folder. */
async function stackAround(
  stacks: readonly Stack[],
  place: ProjectPlace | undefined,
): Promise<Stack | undefined> {
  const made = stacks.filter(({ named }) => !named);
  const around = place ?? placeAround(made);
  return around && stackOf(made, around);
}

/**
 * The stack of `place`. A folder whose project was renamed has several; only then is the name read, because
 * reading is slow. Throws a CommandError if it cannot be read.
 */
async function stackOf(made: readonly Stack[], { folder, projectName }: ProjectPlace) {
  const found = made.filter(({ path }) => path === folder);
  if (found.length < 2) return found[0];
  const project = await projectName().catch((error: Error) => {
    const names = found.map(({ name }) => name).join(' and ');
    throw new CommandError(
      `${folder} has the stacks ${names}, and its project file cannot be read: ${error.message}`,
      'Correct the file, or give --stack.',
    );
  });
  return found.find(({ name }) => isStackOf(name, project, folder));
}

/** Stands for the stack of a project that is not registered yet; no stack has this name. */
export const UNREGISTERED = '.';

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
  const place = choice.place ?? placeHere();
  const given = givenName(choice);
  if (given === undefined) {
    const around = await stackAround(stacks ?? [], place);
    return around?.name ?? (place === undefined ? null : UNREGISTERED);
  }
  const { mayBeNew = false, isOwn = false, ends = false } = choice;
  if (stacks === null && !isOwn) return given.text;
  const known = stacks ?? [];
  const current = place ?? (await placeOfOtherTool()) ?? placeAround(known);
  const naming = { stacks: known, place: current, mayBeNew, isOwn, ends };
  return (await namedStack(given, naming)) ?? UNREGISTERED;
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
  /** Whether the group registered as `name` is one of this stack; the agents of all stacks share one. */
  hasGroup(name: string): boolean;
}

/** The scope of a stack with the services `registered`. */
export function scopeOf(stack: string | null, registered: readonly Service[]): StackScope {
  const names = new Set(registered.map(({ name }) => name));
  // Another stack may be called like a group of this one: `shop--login`.
  const groups = new Set(registered.flatMap((one) => (one.stack === stack ? one.group : [])));
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
    hasGroup: (name) => stack === null || (groups.has(name) && name !== AGENTS_GROUP),
  };
}

/** The scope for `choice`; requests the services only if names may be short. */
export async function stackScope(client: Client, choice: StackChoice): Promise<StackScope> {
  const stack = await chosenStack(client, choice);
  return scopeOf(stack, stack === null || stack === UNREGISTERED ? [] : await client.services());
}
