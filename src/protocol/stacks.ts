// Stacks: the projects of a machine, one stack per working tree, docs/reference.md "Stacks". A stack's name
// contains its project, and a service's name contains its stack, so neither is stored twice.
import { createHash } from 'node:crypto';
import type { MessageOf } from '../runtime/actor.ts';
import { isHook } from './hooks.ts';
import { hostLabel } from './names.ts';
import type { ServiceProtocol, StartReply } from './service.ts';

/** The separator of project, slug and service; no part of a name contains it. */
const SEPARATOR = '--';
const PART = '[a-z0-9]+(?:-[a-z0-9]+)*';

export const PROJECT_NAME_PATTERN = new RegExp(`^${PART}$`);
export const STACK_NAME_PATTERN = new RegExp(`^${PART}(?:${SEPARATOR}${PART})?$`);

/** The longest name of a service or group, with the prefix of its stack. */
const MAX_NAME = 63;
/** Leaves room for the rest of a service's name. */
export const MAX_STACK_NAME = 48;
/** The longest project name that leaves room for a slug. */
export const MAX_PROJECT_NAME = 26;
const MAX_SLUG = 20;
const HASH_CHARACTERS = 4;

/** The project of a stack. */
export const projectOfStack = (stack: string): string => stack.split(SEPARATOR)[0] ?? stack;

/** The slug of a stack; null for the stack of the main working tree. */
export const slugOfStack = (stack: string): string | null => stack.split(SEPARATOR)[1] ?? null;

/** The value of `${slug}` in a stack: in that of the main working tree, which has no slug, the project. */
export const slugValueOf = (stack: string): string => slugOfStack(stack) ?? projectOfStack(stack);

/** The registered name of `service` in `stack`; for a group, that of the group. */
export const nameInStack = (stack: string, service: string): string => `${stack}${SEPARATOR}${service}`;

/** The short name within `stack` of the service registered as `name`; null if it is not in that stack. */
export function shortName(name: string, stack: string): string | null {
  const prefix = nameInStack(stack, '');
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : '';
  return rest === '' || rest.includes(SEPARATOR) ? null : rest;
}

/** Whether the service registered as `name` is a hook of `stack`; null: it is in none. */
export const isHookOf = (stack: string | null | undefined, name: string): boolean =>
  Boolean(stack) && isHook(shortName(name, stack ?? ''));

/** Why `short` is too long for a service or group of `stack`, after its name; null: it is not. */
export function lengthFault(stack: string, short: string): string | null {
  const prefix = nameInStack(stack, '');
  const left = MAX_NAME - prefix.length;
  if (short.length <= left) return null;
  return `is too long: the prefix ${prefix} counts, so at most ${left} characters remain, and it has ${short.length}`;
}

/** Whether `name` can be a short name: it contains no separator. */
export const isShortName = (name: string): boolean => !name.includes(SEPARATOR);

/** The host name of a service of a stack: docs/reference.md "Host names". */
export const stackHostname = (stack: string, service: string): string =>
  [hostLabel(service), slugOfStack(stack), projectOfStack(stack), 'localhost']
    .filter((part) => part !== null)
    .join('.');

/** The names of the variables with the port and the URL of `service`, which the others of its stack get. */
export function addressVariables(service: string): { port: string; url: string } {
  const suffix = service.toUpperCase().replaceAll('-', '_');
  return { port: `PORT_${suffix}`, url: `URL_${suffix}` };
}

/**
 * A placeholder for an address or a name of the stack. An additional dollar sign in front makes it literal:
 * docs/reference.md "Placeholders".
 */
export const PLACEHOLDER = /(\$?)\$\{((?:port|url|host)\.[a-z0-9_][a-z0-9_-]*|stack|slug)\}/g;

const hashOf = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARACTERS);

/** `text` reduced to the characters allowed in a project or slug; '' if it has none of them. */
const toPart = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** `text` with a hash of `hashed` at its end, in at most `length` characters. */
function withHash(text: string, hashed: string, length: number): string {
  const start = text.slice(0, length - HASH_CHARACTERS - 1).replace(/-$/, '');
  return start === '' ? hashOf(hashed) : `${start}-${hashOf(hashed)}`;
}

/** `text` as a project or slug of at most `length` characters, with a hash if it had to be cut. */
function fitPart(text: string, length: number): string {
  const part = toPart(text);
  return part !== '' && part.length <= length ? part : withHash(part, text, length);
}

/** The name of a project in the folder called `folder`. */
export const projectName = (folder: string): string => fitPart(folder, MAX_PROJECT_NAME);

/** `text` as a slug. */
export const slugText = (text: string): string => fitPart(text, MAX_SLUG);

/** Where a stack is: what its name is made from. */
export interface StackPlace {
  project: string;
  /** The folder of the project, absolute. */
  path: string;
  /** The branch or folder of a linked worktree; null in the main working tree. */
  worktree: string | null;
}

/** The possible names of the stack at `place`; the first whose name and slug are free is used. */
export function stackNames({ project, path, worktree }: StackPlace): string[] {
  if (worktree === null) return [project, withHash(project, path, MAX_PROJECT_NAME)];
  const slug = toPart(worktree);
  const slugs = [slugText(worktree), withHash(slug, worktree, MAX_SLUG), withHash(slug, path, MAX_SLUG)];
  return slugs.map((one) => nameInStack(project, one));
}

/** The record of a stack in the store. */
export interface StoredStack extends StackPlace {
  name: string;
  /** The branch when it was last brought up; null: none, as in the middle of a rebase. */
  branch: string | null;
  /** A person chose the name, so standing in the folder does not select this stack. */
  isNamed: boolean;
}

/** A place, with the name that a person has chosen for its stack; null: the name is generated. */
export interface StackClaim extends StackPlace {
  branch: string | null;
  name: string | null;
}

/** A stack with what is on disk now. */
export interface StackRow extends StoredStack {
  /** Its folder is no longer there. */
  gone: boolean;
}

/** Owns the records of stacks. */
export interface StacksProtocol {
  /** `name`: only that stack, if it exists; null: all. */
  list(message: { name: string | null }): { stacks: StackRow[] };
  /** The stack of a place, registered if it is new. Fails name_in_use, daemon_busy, storage_full. */
  claim(message: { claim: StackClaim }): { stack: StoredStack; created: boolean };
  /**
   * Starts the hook `create` of the stack as `request` says. Fails daemon_busy while the stack is being
   * removed or its hook `remove` runs, and as the start does.
   */
  create(message: { stack: string; request: MessageOf<ServiceProtocol, 'start'> }): StartReply;
  /**
   * Stops and removes all services of the stack, runs its hook `remove`, and forgets it. Its hook `create` is
   * undone before `remove` starts. Fails unknown_stack, storage_full, and (unless `force`) as the start of
   * the hook does.
   */
  remove(message: { name: string; force: boolean }): { services: string[] };
}
