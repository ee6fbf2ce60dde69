// Finds the stack that a person names, by one rule for all commands: docs/reference.md "Stacks".
import type { Stack } from '../../client/records.ts';
import { isShortName, nameInStack, projectOfStack, slugText, stackNames } from '../../protocol/stacks.ts';
import { CommandError } from './exit_codes.ts';

/** The folder of a project. */
export interface ProjectPlace {
  folder: string;
  /** The name that the project has now. Rejects if the project file cannot be read. */
  projectName(): Promise<string>;
}

interface NameOptions {
  stack?: string | undefined;
  project?: string | undefined;
}

/** A name as it was given. */
interface GivenName {
  /** As a whole name of a stack: `shop` or `shop--login`. Given by --stack, it may also be a slug. */
  text: string;
  /** The two parts of --project; null: it was given by --stack or BERTH_STACK, or without a slug. */
  project: string | null;
  slug: string | null;
}

export interface Naming {
  stacks: readonly Stack[];
  /** The current project; undefined: none. */
  place: ProjectPlace | undefined;
  /** The stack need not exist. */
  mayBeNew: boolean;
  /** It is one of the current project, and need not exist. */
  isOwn: boolean;
  /** The command ends the whole stack: that of another project has to be named as such. */
  ends: boolean;
}

interface OwnProject {
  project: string;
  folder: string;
  /** The folder is in a linked worktree, whose stack has a slug. */
  isLinked: boolean;
}

/** The name given by --project, --stack or BERTH_STACK; undefined: none. */
export function givenName({ stack, project }: NameOptions): GivenName | undefined {
  if (project !== undefined) {
    const [name = '', ...rest] = project.split('/');
    if (rest.length === 0) return { text: name, project: name, slug: null };
    const slug = rest.join('/');
    return { text: nameInStack(name, slug), project: name, slug };
  }
  const text = stack ?? (process.env['BERTH_STACK'] || undefined);
  return text === undefined ? undefined : { text, project: null, slug: null };
}

/** Throws a CommandError if the project file cannot be read and the folder's stacks do not tell the name. */
async function ownProject(
  { folder, projectName }: ProjectPlace,
  stacks: readonly Stack[],
): Promise<OwnProject> {
  const project = await projectName().catch((error: Error) => {
    const here = stacks.filter(({ path }) => path === folder);
    const [known, another] = new Set(here.map(({ name }) => projectOfStack(name)));
    if (known !== undefined && another === undefined) return known;
    throw new CommandError(
      `the project file in ${folder} cannot be read: ${error.message}`,
      'Correct the file, or call the command in another folder.',
    );
  });
  return { project, folder, isLinked: (await import('./project_name.ts')).isInLinkedTree(folder) };
}

/** Whether `stack` is named after the branch or slug `named`, also if its slug ends in a hash. */
const isNamedAfter = ({ name, path }: Stack, named: string): boolean =>
  stackNames({ project: projectOfStack(name), path: path ?? '', worktree: named }).includes(name);

/**
 * The stack with the slug `named`: `exact`, or the only one; undefined if there is none. Throws a
 * CommandError if several match.
 */
function stackWithSlug(
  named: string,
  stacks: readonly Stack[],
  exact: string | undefined,
): string | undefined {
  const found = stacks.filter((one) => isNamedAfter(one, named)).map(({ name }) => name);
  if (exact !== undefined && found.includes(exact)) return exact;
  if (found.length < 2) return found[0];
  throw new CommandError(`${named} may be ${found.join(' or ')}`, 'Give the whole name.');
}

const isOf = (stack: Stack, projects: readonly string[]): boolean =>
  projects.includes(projectOfStack(stack.name));

/** The stack `text`. Throws a CommandError if it does not exist and must. */
function existing(text: string, { stacks, mayBeNew, isOwn }: Naming): string {
  if (mayBeNew || isOwn || stacks.some(({ name }) => name === text)) return text;
  throw new CommandError(`there is no stack ${text}`, '`berth stacks` lists the stacks.');
}

/**
 * The stack of the current folder, given by the name of its project. It may have a hash in its name, because
 * a project of the same name in another folder has that one. null: it is not registered yet. Throws a
 * CommandError where the name may be, or is, that of the other.
 */
function stackOfOwnProject(
  { project, folder }: OwnProject,
  isByProject: boolean,
  naming: Naming,
): string | null {
  const { stacks } = naming;
  const names = stackNames({ project, path: folder, worktree: null });
  const here = stacks.find(({ name, path }) => path === folder && names.includes(name))?.name;
  const other = stacks.find(({ name, path }) => name === project && path !== folder);
  const hint = `\`-p ${project}\` is the stack of this folder; in another folder, \`--stack ${project}\` is the other one.`;
  if (here !== undefined && other && !isByProject)
    throw new CommandError(`${project} may be ${project} or ${here}`, hint);
  if (here !== undefined) return here;
  const mayBeNew = naming.mayBeNew || naming.isOwn;
  if (other?.path && !other.gone && !(mayBeNew && isByProject))
    throw new CommandError(
      `${project} is the stack of the folder ${other.path}, and that of ${folder} is not up`,
      hint,
    );
  return mayBeNew ? null : existing(project, naming);
}

/**
 * The stack that `given` names. null: that of the current folder, which is not registered yet. Throws a
 * CommandError if several match, or if it does not exist and must.
 */
export async function namedStack(given: GivenName, naming: Naming): Promise<string | null> {
  const { text, project, slug } = given;
  const { stacks, place } = naming;
  const isWhole = ({ name, path }: Stack): boolean =>
    name === text && (!isShortName(text) || path === place?.folder);
  if (stacks.some(isWhole)) return text;
  if (project !== null && slug !== null) {
    const name = nameInStack(project, slugText(slug));
    const ofProject = stacks.filter((one) => isOf(one, [project]));
    return stackWithSlug(slug, ofProject, name) ?? existing(name, naming);
  }
  const own = place && (await ownProject(place, stacks));
  if (own && !own.isLinked && text === own.project) return stackOfOwnProject(own, project !== null, naming);
  if (project !== null || text === own?.project) return existing(text, naming);
  const isOwnWhole = own !== undefined && text.startsWith(nameInStack(own.project, ''));
  const ownName = own && (isOwnWhole ? text : nameInStack(own.project, slugText(text)));
  if (own) {
    const projects = stackNames({ project: own.project, path: own.folder, worktree: null });
    const ofOwn = stacks.filter((one) => isOf(one, projects));
    const found = stackWithSlug(text, ofOwn, ownName);
    if (found !== undefined) return found;
  }
  if (ownName !== undefined && naming.isOwn) return ownName;
  const isName = stacks.some(({ name }) => name === text);
  const found = isName ? text : stackWithSlug(text, stacks, undefined);
  if (found === undefined) return naming.mayBeNew ? (ownName ?? text) : existing(text, naming);
  const isGone = stacks.some(({ name, gone }) => name === found && gone);
  if (naming.ends && ownName !== undefined && !isGone)
    throw new CommandError(
      `${text} may be ${found} of another project or ${ownName}, which does not exist`,
      `\`-p ${found.replace('--', '/')}\` chooses the other one.`,
    );
  return found;
}
