// The user's kubeconfig, read on the user's own machine as kubectl reads it: the files of $KUBECONFIG are
// merged, paths are relative to the file that contains them, and unknown fields are ignored. Files are
// untrusted only in form: what they name may be read and run here, because kubectl would.
import { closeSync, existsSync, readSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { openRegularFile } from '../../settings/state_files.ts';
import { serverAddress } from '../kube/server_address.ts';
import { parseYamlNodes, type YamlNode, YamlPositionError } from '../yaml.ts';

/** Why a kubeconfig cannot be used, and what to do about it. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
  readonly hint: string;
  constructor(message: string, hint = '') {
    super(message);
    this.hint = hint;
  }
}

/** The fields of an entry by name, with their YAML values. */
export type Fields = Readonly<Record<string, unknown>>;

/** An entry of a kubeconfig, and the folder that its paths are relative to. */
export interface KubeconfigEntry {
  name: string;
  fields: Fields;
  folder: string;
}

/** A context with the cluster and the user it names. */
export interface KubeContext {
  name: string;
  /** null: none is given. */
  namespace: string | null;
  cluster: KubeconfigEntry;
  user: KubeconfigEntry;
}

const LISTS = { clusters: 'cluster', users: 'user', contexts: 'context' } as const;
type ListName = keyof typeof LISTS;

interface Kubeconfig extends Record<ListName, Map<string, KubeconfigEntry>> {
  currentContext: string;
}

/** Even a file with thousands of contexts is smaller. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_DEPTH = 20;
const MAX_NODES = 100_000;

const tooLarge = (): KubeconfigError => new KubeconfigError(`is larger than ${MAX_FILE_BYTES} bytes`);

const unreadable = (name: string, error: unknown): KubeconfigError => {
  const reason = error instanceof Error ? error.message.replace(`${name}: `, '') : String(error);
  const hint = reason.includes('is a FIFO') ? 'Pipe it in with `--kubeconfig -`.' : '';
  return new KubeconfigError(`${name} cannot be read: ${reason}`, hint);
};

/**
 * Reads stdin. It may come from a person or a slow program, so Ctrl-C ends the command meanwhile. Throws a
 * KubeconfigError.
 */
export async function readUserInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of process.stdin) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (size > MAX_FILE_BYTES) throw tooLarge();
      chunks.push(bytes);
    }
    return Buffer.concat(chunks).toString();
  } catch (error) {
    throw unreadable('stdin', error);
  }
}

/** The text of a regular file. Throws a KubeconfigError that names `path`. */
export function readUserFile(path: string): string {
  let fd: number | null = null;
  try {
    fd = openRegularFile(path, 0);
    const chunks: Buffer[] = [];
    for (let size = 0; ; ) {
      const chunk = Buffer.allocUnsafe(65_536);
      const count = readSync(fd, chunk);
      if (count === 0) return Buffer.concat(chunks).toString();
      size += count;
      if (size > MAX_FILE_BYTES) throw tooLarge();
      chunks.push(chunk.subarray(0, count));
    }
  } catch (error) {
    throw unreadable(path, error);
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

/** The plain value of a node. Its keys are never `__proto__`. */
function plainValue(node: YamlNode): unknown {
  if (node.kind === 'list') return node.items.map(plainValue);
  if (node.kind === 'scalar') return node.value;
  return Object.fromEntries(node.rows.map(({ key, value }) => [key, plainValue(value)]));
}

/** `value` as fields; undefined if it is not a mapping. */
export const mappingOf = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;

/** The entries of one list. Like kubectl, refuses a name that occurs twice in one file. */
function entriesOf(root: Fields, list: ListName, file: string): Map<string, KubeconfigEntry> {
  const entries = new Map<string, KubeconfigEntry>();
  const rows = root[list] ?? [];
  if (!Array.isArray(rows)) throw new KubeconfigError(`${file}: ${list} must be a list`);
  for (const [at, row] of rows.entries()) {
    const name = mappingOf(row)?.['name'];
    if (typeof name !== 'string')
      throw new KubeconfigError(`${file}: ${list}[${at}] must have a name that is a text`);
    if (entries.has(name)) throw new KubeconfigError(`${file}: ${list} has ${JSON.stringify(name)} twice`);
    const value = mappingOf(row)?.[LISTS[list]] ?? {};
    const fields = mappingOf(value);
    if (!fields) throw new KubeconfigError(`${file}: ${list}[${at}].${LISTS[list]} must be a mapping`);
    entries.set(name, { name, fields, folder: dirname(file) });
  }
  return entries;
}

/** Parses the text of `file`, an absolute path. Throws a KubeconfigError. */
function parseFile(text: string, file: string): Kubeconfig {
  let value: unknown;
  try {
    value = plainValue(parseYamlNodes(text, MAX_DEPTH, MAX_NODES)) ?? {};
  } catch (error) {
    if (!(error instanceof YamlPositionError)) throw error;
    throw new KubeconfigError(`${file}:${error.at.line}: ${error.message}`);
  }
  const root = mappingOf(value);
  if (!root) throw new KubeconfigError(`${file}: is no kubeconfig: it must be a YAML mapping`);
  const current = root['current-context'] ?? '';
  if (typeof current !== 'string') throw new KubeconfigError(`${file}: current-context must be a text`);
  return {
    currentContext: current,
    clusters: entriesOf(root, 'clusters', file),
    users: entriesOf(root, 'users', file),
    contexts: entriesOf(root, 'contexts', file),
  };
}

/** Merges like kubectl: the first file that has an entry, or a current context, wins. */
function merge(files: readonly Kubeconfig[]): Kubeconfig {
  const merged = (list: ListName) => new Map([...files].reverse().flatMap((file) => [...file[list]]));
  return {
    currentContext: files.map((file) => file.currentContext).find((name) => name !== '') ?? '',
    clusters: merged('clusters'),
    users: merged('users'),
    contexts: merged('contexts'),
  };
}

/** Files in `$KUBECONFIG`, and `~/.kube/config`, are skipped if they do not exist. */
const readIfThere = (path: string): Kubeconfig[] =>
  existsSync(path) ? [parseFile(readUserFile(path), path)] : [];

type Environment = Readonly<Record<string, string | undefined>>;

/** The files that kubectl reads without `--kubeconfig`, as absolute paths. */
const defaultKubeconfigFiles = ({ KUBECONFIG, HOME }: Environment): string[] =>
  KUBECONFIG
    ? KUBECONFIG.split(delimiter)
        .filter((path) => path !== '')
        .map((path) => resolve(path))
    : HOME
      ? [join(HOME, '.kube/config')]
      : [];

/** The kubeconfig and context to use, from `--kubeconfig` (`-`: stdin) and `--context`. */
export interface ContextChoice {
  file: string | undefined;
  context: string | undefined;
  /** Where the context should lead, as `serverAddress` has it, if `context` names none. */
  server?: string | null;
  /** The text of stdin, if `file` names it. */
  stdin?: string;
}

function readFiles(
  { file, stdin = '' }: ContextChoice,
  env: Environment,
): { config: Kubeconfig; names: string } {
  if (file !== undefined) {
    const path = file === '-' ? resolve('stdin') : resolve(file);
    return { config: parseFile(file === '-' ? stdin : readUserFile(path), path), names: file };
  }
  const paths = defaultKubeconfigFiles(env);
  return { config: merge(paths.flatMap(readIfThere)), names: paths.join(', ') || '~/.kube/config' };
}

/** The entry named by a context. */
function named(config: Kubeconfig, list: 'clusters' | 'users', context: KubeconfigEntry): KubeconfigEntry {
  const key = LISTS[list];
  const name = context.fields[key];
  const found = typeof name === 'string' ? config[list].get(name) : undefined;
  if (found) return found;
  const what =
    typeof name === 'string' && name !== '' ? `the ${key} ${name}, which there is not` : `no ${key}`;
  throw new KubeconfigError(`the context ${context.name} names ${what}`);
}

/** The chosen context, else the current one; but the only one that leads to `server` if that one does not. */
function chosenName({ context, server = null }: ContextChoice, config: Kubeconfig): string {
  const { contexts, clusters, currentContext } = config;
  if (context !== undefined || server === null) return context ?? currentContext;
  const leading = [...contexts.values()].flatMap(({ name, fields }) => {
    const own = clusters.get(String(fields['cluster']))?.fields['server'];
    return serverAddress(String(own)) === server ? [name] : [];
  });
  const [only, ...others] = leading;
  return only === undefined || others.length > 0 || leading.includes(currentContext) ? currentContext : only;
}

/** The most contexts listed in an error. */
const MAX_LISTED = 20;

/**
 * The context to use. `env` has KUBECONFIG and HOME. Throws a KubeconfigError.
 * docs/reference.md "Clusters on the command line".
 */
export function readKubeContext(choice: ContextChoice, env: Environment): KubeContext {
  const { config, names } = readFiles(choice, env);
  const all = [...config.contexts.keys()].sort();
  const listed = `Contexts: ${all.slice(0, MAX_LISTED).join(', ')}${all.length > MAX_LISTED ? ', ...' : ''}.`;
  if (all.length === 0)
    throw new KubeconfigError(
      `there is no context in ${names}`,
      'Name the file with --kubeconfig or $KUBECONFIG.',
    );
  const name = chosenName(choice, config);
  if (name === '')
    throw new KubeconfigError(`${names} has no current context`, `Name one: --context. ${listed}`);
  const found = config.contexts.get(name);
  if (!found) throw new KubeconfigError(`${names} has no context ${name}`, listed);
  const namespace = found.fields['namespace'];
  return {
    name,
    namespace: typeof namespace === 'string' && namespace !== '' ? namespace : null,
    cluster: named(config, 'clusters', found),
    user: named(config, 'users', found),
  };
}
