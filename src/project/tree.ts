// Between the document with its places and plain values that can be checked: values down, problems back up.
import type { Place, YamlNode } from '../adapters/yaml.ts';
import { InterpolationError, interpolate } from './interpolate.ts';
import { type Problem, suggestion } from './problem.ts';
import { OWN_KEY, PROJECT_SHAPE, SERVICE_SHAPE } from './shape.ts';

type Path = readonly PropertyKey[];

/** `services.web.env.PORT`, as messages name a place. */
const dotted = (path: Path): string => path.map(String).join('.');

const isEnvValue = (path: Path): boolean => path.length === 4 && path[0] === 'services' && path[2] === 'env';
/** The maps whose keys are ours; in the others they are names of services or variables. */
const hasOwnKeys = (path: Path): boolean => path.length === 0 || path.length === 2 || path[3] === 'stop';

/** What was filled into a scalar without quotes is read as YAML reads it. */
function retyped(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text;
}

/**
 * The plain value of `node` with every `${...}` filled in. Values of `env` are the texts that were written. Keys of the
 * user's own (x-...) are left out. What cannot be filled in becomes a problem.
 */
export function plainOf(
  node: YamlNode,
  lookup: (name: string) => string | undefined,
  problems: Problem[],
  path: Path = [],
): unknown {
  if (node.kind === 'list') {
    return node.items.map((item, index) => plainOf(item, lookup, problems, [...path, index]));
  }
  if (node.kind === 'map') {
    const rows = node.rows.filter(({ key }) => !(hasOwnKeys(path) && OWN_KEY.test(key)));
    return Object.fromEntries(
      rows.map(({ key, value }) => [key, plainOf(value, lookup, problems, [...path, key])]),
    );
  }
  if (typeof node.value !== 'string') {
    return node.value !== null && isEnvValue(path) ? node.source : node.value;
  }
  try {
    const text = interpolate(node.value, lookup);
    return node.plain && text !== node.value && !isEnvValue(path) ? retyped(text) : text;
  } catch (error) {
    if (!(error instanceof InterpolationError)) throw error;
    problems.push({ at: node.at, message: `${dotted(path)}: ${error.message}` });
    return node.value;
  }
}

/** Where the value at `path` stands, or the key of the nearest one around it. With `key` the place of the key itself. */
export function placeOf(tree: YamlNode, path: Path, key = false): Place {
  let node = tree;
  let at = tree.at;
  for (const [index, part] of path.entries()) {
    const item = node.kind === 'list' && typeof part === 'number' ? node.items[part] : undefined;
    const row = node.kind === 'map' ? node.rows.find((one) => one.key === part) : undefined;
    const next = item ?? row?.value;
    if (!next) return at;
    node = next;
    // A map is found by its key, and an empty value has no place of its own worth showing.
    const isText = node.kind === 'scalar' && node.source !== '';
    const isKeyWanted = key && index === path.length - 1;
    at = row && (isKeyWanted || !isText) ? row.keyAt : node.at;
  }
  return at;
}

/** What others call our keys. */
const PEERS = new Map([
  ['command', 'cmd'],
  ['commands', 'cmd'],
  ['run', 'cmd'],
  ['script', 'cmd'],
  ['environment', 'env'],
  ['working_dir', 'cwd'],
  ['dir', 'cwd'],
  ['ports', 'port'],
  ['healthcheck', 'ready'],
  ['readiness_probe', 'ready'],
  ['dependsOn', 'depends_on'],
  ['availability', 'restart'],
  ['shutdown', 'stop'],
  ['stop_signal', 'stop.signal'],
  ['stop_grace_period', 'stop.grace'],
  ['namespace', 'group'],
  ['profiles', 'group'],
  ['processes', 'services'],
]);

function knownKeys(path: Path): string[] {
  if (path.length === 0) return Object.keys(PROJECT_SHAPE.shape);
  if (path.length === 2) return Object.keys(SERVICE_SHAPE.shape);
  return path[2] === 'stop' ? ['signal', 'grace'] : ['condition'];
}

/** An issue of the shape, as far as it is read here. */
interface Issue {
  code?: string;
  path: Path;
  message: string;
  keys?: readonly string[];
  errors?: readonly (readonly Issue[])[];
  issues?: readonly Issue[];
}

function issueRows(tree: YamlNode, issue: Issue, base: Path): Problem[] {
  const path = [...base, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(path);
    return (issue.keys ?? []).map((key) => {
      const peer = PEERS.get(key);
      const hint = peer ? `; here it is ${peer}` : suggestion(key, known);
      return {
        at: placeOf(tree, [...path, key], true),
        message: `${dotted([...path, key])}: unknown key${hint}`,
      };
    });
  }
  if (issue.code === 'invalid_key') {
    const message = `${dotted(path)}: ${issue.issues?.[0]?.message ?? issue.message}`;
    return [{ at: placeOf(tree, path, true), message }];
  }
  // Of alternatives the one that went deepest is the one that was meant.
  const meant = issue.errors?.find((branch) => branch.some((one) => one.path.length > 0));
  if (meant) return meant.flatMap((one) => issueRows(tree, one, path));
  const where = path.length > 0 ? `${dotted(path)}: ` : '';
  return [{ at: placeOf(tree, path), message: where + issue.message }];
}

/** The problems that the shape found, each with its place. */
export function issueProblems(tree: YamlNode, issues: readonly Issue[]): Problem[] {
  return issues.flatMap((issue) => issueRows(tree, issue, []));
}
