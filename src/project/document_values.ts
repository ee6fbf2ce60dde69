// Turns a YAML document into plain values for the shape to check, and issues of the shape into problems with
// places.
import type { YamlNode, YamlPosition } from '../adapters/yaml.ts';
import { textFault } from '../protocol/text_fault.ts';
import { InterpolationError, interpolate } from './interpolate.ts';
import type { ProjectProblem } from './project_error.ts';
import { EXTENSION_KEY, PROJECT_SERVICE_SHAPE, PROJECT_SHAPE } from './project_shape.ts';
import { RUN_KEYS } from './run_shapes.ts';
import { suggestion } from './spelling.ts';

type NodePath = readonly PropertyKey[];

/** The path as shown in messages: `services.web.env.PORT`. */
const formatPath = (path: NodePath): string => path.map(String).join('.');

const isEnvValue = (path: NodePath): boolean =>
  path.length === 4 && path[0] === 'services' && path[2] === 'env';
/** Whether the schema fixes the keys of the map; in other maps they are names of services or variables. */
const hasSchemaKeys = (path: NodePath): boolean =>
  path.length === 0 || path.length === 2 || (path.length === 3 && path[2] === 'stop');

/** Reads text that interpolation put into an unquoted scalar, as YAML reads it. */
function parseScalar(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text;
}

/**
 * The plain value of `node` with every `${...}` filled in. Values of `env` are the texts that were written.
 * Keys of the user's own (x-...) are left out. What cannot be filled in becomes a problem.
 */
export function interpolateNode(
  node: YamlNode,
  lookup: (name: string) => string | undefined,
  problems: ProjectProblem[],
  path: NodePath = [],
): unknown {
  if (node.kind === 'list') {
    return node.items.map((item, index) => interpolateNode(item, lookup, problems, [...path, index]));
  }
  if (node.kind === 'map') {
    const rows = node.rows.filter(({ key }) => !(hasSchemaKeys(path) && EXTENSION_KEY.test(key)));
    return Object.fromEntries(
      rows.map(({ key, value }) => [key, interpolateNode(value, lookup, problems, [...path, key])]),
    );
  }
  if (typeof node.value !== 'string') {
    return node.value !== null && isEnvValue(path) ? node.source : node.value;
  }
  try {
    const text = interpolate(node.value, lookup);
    const fault = textFault(text);
    if (fault !== null) problems.push({ at: node.at, message: `${formatPath(path)}: ${fault}` });
    return node.isPlain && text !== node.value && !isEnvValue(path) ? parseScalar(text) : text;
  } catch (error) {
    if (!(error instanceof InterpolationError)) throw error;
    problems.push({ at: node.at, message: `${formatPath(path)}: ${error.message}` });
    return node.value;
  }
}

/**
 * The position of the value at `path`, or of the key of the nearest value around it. With `key`, the position
 * of the key itself.
 */
export function positionOfPath(tree: YamlNode, path: NodePath, key = false): YamlPosition {
  let node = tree;
  let at = tree.at;
  for (const [index, part] of path.entries()) {
    const item = node.kind === 'list' && typeof part === 'number' ? node.items[part] : undefined;
    const row = node.kind === 'map' ? node.rows.find((one) => one.key === part) : undefined;
    const next = item ?? row?.value;
    if (!next) return at;
    node = next;
    // A map and an empty value are shown at their key.
    const isText = node.kind === 'scalar' && node.source !== '';
    const isKeyWanted = key && index === path.length - 1;
    at = row && (isKeyWanted || !isText) ? row.keyAt : node.at;
  }
  return at;
}

/** Keys of other tools, with the key used here. */
const KEYS_OF_OTHER_TOOLS = new Map([
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
  ['liveness_probe', 'live'],
  ['mem_limit', 'limits.memory_mb'],
  ['memoryMB', 'memory_mb'],
  ['minMs', 'min_ms'],
  ['maxMs', 'max_ms'],
  ['withinMs', 'within_ms'],
  ['envFile', 'env_file'],
  ['processes', 'services'],
]);

function knownKeys(path: NodePath): string[] {
  if (path.length === 0) return Object.keys(PROJECT_SHAPE.shape);
  if (path.length === 2) return Object.keys(PROJECT_SERVICE_SHAPE.shape);
  if (path[0] === 'hooks') return ['create', 'remove'];
  if (path[2] === 'port') return ['fixed'];
  return [...(RUN_KEYS[String(path[2])] ?? ['condition'])];
}

/** The fields of a zod issue that are used here. */
interface ShapeIssue {
  code?: string;
  path: NodePath;
  message: string;
  keys?: readonly string[];
  errors?: readonly (readonly ShapeIssue[])[];
  issues?: readonly ShapeIssue[];
}

/** Whether the value has the right type, and the fault is inside it. */
const isDeep = ({ code, path }: ShapeIssue): boolean =>
  path.length > 0 || code === 'unrecognized_keys' || code === 'custom';

function problemsOfIssue(tree: YamlNode, issue: ShapeIssue, base: NodePath): ProjectProblem[] {
  const path = [...base, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(path);
    return (issue.keys ?? []).map((key) => {
      const peer = KEYS_OF_OTHER_TOOLS.get(key);
      const hint = peer ? `; here it is ${peer}` : suggestion(key, known);
      return {
        at: positionOfPath(tree, [...path, key], true),
        message: `${formatPath([...path, key])}: unknown key${hint}`,
      };
    });
  }
  if (issue.code === 'invalid_key') {
    const message = `${formatPath(path)}: ${issue.issues?.[0]?.message ?? issue.message}`;
    return [{ at: positionOfPath(tree, path, true), message }];
  }
  // Of several alternatives, the one that matched deeper is the intended one.
  const meant = issue.errors?.find((branch) => branch.some(isDeep));
  if (meant) return meant.flatMap((one) => problemsOfIssue(tree, one, path));
  const where = path.length > 0 ? `${formatPath(path)}: ` : '';
  return [{ at: positionOfPath(tree, path), message: where + issue.message }];
}

/** The issues of the shape as problems with their places. */
export function problemsOfIssues(tree: YamlNode, issues: readonly ShapeIssue[]): ProjectProblem[] {
  return issues.flatMap((issue) => problemsOfIssue(tree, issue, []));
}
