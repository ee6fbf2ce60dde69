// Imports package.json: its development scripts, else its start script, or those of its workspaces.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseYamlNodes, type YamlNode } from '../adapters/yaml.ts';
import { readTextFile } from '../settings/state_files.ts';
import { isPortlessClient, portInCommand, serverOptions } from './command_port.ts';
import { type ImportedProject, type ImportedService, toServiceName } from './imported_project.ts';

interface Manifest {
  name?: unknown;
  scripts?: Record<string, unknown>;
  workspaces?: unknown;
  packageManager?: unknown;
}

/** Scripts that run a service if there is no development script, in order of preference. */
const OTHER_SCRIPTS = ['start', 'serve'] as const;
/** `dev:web` is a separate service. */
const DEV_SCRIPT = /^dev(?::(.+))?$/;
/** A `dev` that runs the other development scripts, by npm-run-all, concurrently or the like. */
const RUNS_OTHERS = /\bdev:/;

const RUNNERS = ['npm', 'pnpm', 'yarn', 'bun'] as const;
type Runner = (typeof RUNNERS)[number];

/** The program that runs the scripts, by its lock file. */
const LOCK_FILES: readonly [lock: string, runner: Runner][] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
];

function runnerOf(folder: string, { packageManager }: Manifest): Runner {
  const named = typeof packageManager === 'string' ? packageManager.split('@')[0] : undefined;
  const known = RUNNERS.find((runner) => runner === named);
  return known ?? LOCK_FILES.find(([lock]) => existsSync(join(folder, lock)))?.[1] ?? 'npm';
}

/** Only npm needs `--` before options for the program that a script starts. */
const runScript = (runner: Runner, script: string, options: string): string =>
  [`${runner} run ${script}`, ...(options ? [runner === 'npm' ? `-- ${options}` : options] : [])].join(' ');

function onlyStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

function pnpmWorkspacePatterns(folder: string): string[] {
  const path = join(folder, 'pnpm-workspace.yaml');
  if (!existsSync(path)) return [];
  const tree = parseYamlNodes(readTextFile(path), 8);
  const list = tree.kind === 'map' ? tree.rows.find(({ key }) => key === 'packages')?.value : undefined;
  const isText = (node: YamlNode) => node.kind === 'scalar' && typeof node.value === 'string';
  return list?.kind === 'list'
    ? list.items.filter(isText).map((node) => (node.kind === 'scalar' ? node.source : ''))
    : [];
}

/** The folders of the workspaces, relative to `folder`. Notes patterns other than `dir` and `dir/*`. */
function workspaceFolders(folder: string, manifest: Manifest, notes: string[]): string[] {
  const listed = Array.isArray(manifest.workspaces)
    ? manifest.workspaces
    : (manifest.workspaces as { packages?: unknown } | undefined)?.packages;
  return [...onlyStrings(listed), ...pnpmWorkspacePatterns(folder)].flatMap((pattern) => {
    const [, parent] = /^([^*?![\]{}]+)\/\*$/.exec(pattern) ?? [];
    if (parent !== undefined && existsSync(join(folder, parent))) {
      const entries = readdirSync(join(folder, parent), { withFileTypes: true });
      return entries
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => join(parent, name))
        .sort();
    }
    if (/[*?![\]{}]/.test(pattern)) notes.push(`the workspace pattern ${pattern} is not followed`);
    else if (parent === undefined) return [pattern];
    return [];
  });
}

/** Throws for text that is no JSON object. */
function parseManifest(text: string): Manifest {
  const value: unknown = JSON.parse(text);
  if (value instanceof Object && !Array.isArray(value)) return value;
  throw new Error('it must be a JSON object');
}

function readManifest(folder: string): Manifest | undefined {
  const path = join(folder, 'package.json');
  return existsSync(path) ? parseManifest(readTextFile(path)) : undefined;
}

const scriptsOf = ({ scripts = {} }: Manifest): [name: string, script: string][] =>
  Object.entries(scripts).filter((row): row is [string, string] => typeof row[1] === 'string');

/** The scripts of a package that run its services: `dev` and every `dev:*`, else `start`. */
function serviceScripts(manifest: Manifest): [name: string, script: string][] {
  const all = scriptsOf(manifest);
  const dev = all.filter(([name]) => DEV_SCRIPT.test(name));
  const parts = dev.filter(([name]) => name !== 'dev');
  const whole = dev.filter(
    ([name, script]) => name === 'dev' && !(parts.length > 0 && RUNS_OTHERS.test(script)),
  );
  if (dev.length > 0) return [...whole, ...parts];
  const other = OTHER_SCRIPTS.find((name) => all.some(([known]) => known === name));
  return all.filter(([name]) => name === other);
}

/** Words for what a script runs, and for how it runs it. */
const SERVICE_WORD =
  /^(?:api|app|backend|client|database|db|docs|emulators?|frontend|jobs?|mocks?|proxy|queue|redis|scheduler|server|storybook|ui|web|workers?|ws)$/;
const RUN_WORD = /^(?:dev|local|run|serve|start|up|watch)$/;

/** Whether a script may run a service by its name, such as `worker`, `api:dev` or `start:api`. */
function isServiceName(script: string): boolean {
  const words = script.split(/[:_-]/);
  const isKnown = words.every((word) => SERVICE_WORD.test(word) || RUN_WORD.test(word));
  return isKnown && words.some((word) => SERVICE_WORD.test(word));
}

/** Whether `text` runs the script `name`, by `npm run`, `concurrently` or the like, also as `api:*`. */
const runsScript = (text: string, name: string): boolean =>
  text
    .split(/[^\w:./-]+/)
    .map((word) => word.replace(/^(?:npm|pnpm|yarn|bun):/, ''))
    .some((word) => word === name || (word.endsWith(':') && name.startsWith(word)));

/** The scripts of a package that may run a service by their name, and are none. */
function leftScripts(manifest: Manifest): string[] {
  const services = serviceScripts(manifest);
  const isLeft = (name: string): boolean =>
    isServiceName(name) && !services.some(([known, text]) => known === name || runsScript(text, name));
  return scriptsOf(manifest)
    .map(([name]) => name)
    .filter(isLeft);
}

/** The input for importing a package. */
interface PackageImport {
  runner: Runner;
  taken: Set<string>;
  notes: string[];
}

function servicesFromManifest(
  manifest: Manifest,
  cwd: string,
  { notes, runner, taken }: PackageImport,
): ImportedService[] {
  const called = typeof manifest.name === 'string' ? manifest.name.replace(/^@[^/]*\//, '') : 'web';
  return serviceScripts(manifest).map(([script, text]) => {
    const [, part] = DEV_SCRIPT.exec(script) ?? [];
    const name = toServiceName(part ?? called, taken);
    const folder = cwd === '.' ? {} : { cwd };
    const named = portInCommand(text);
    const isClient = isPortlessClient(text);
    const options = named || isClient ? null : serverOptions(text);
    if (!named && !isClient && options === null)
      notes.push(`${name}: its script names no port, so it must listen on $PORT`);
    return {
      name,
      cmd: runScript(runner, script, options ?? ''),
      ...folder,
      port: isClient ? null : (named?.port ?? 'auto'),
      ready: named || options !== null ? 'tcp' : undefined,
    };
  });
}

/**
 * The services of the package in `folder`: those of its workspaces that have service scripts, else its own.
 */
export function importPackage(text: string, folder: string): ImportedProject {
  const manifest = parseManifest(text);
  const notes: string[] = [];
  const given = { runner: runnerOf(folder, manifest), taken: new Set<string>(), notes };
  const left = leftScripts(manifest);
  const parts = workspaceFolders(folder, manifest, notes).flatMap((cwd) => {
    const part = readManifest(join(folder, cwd));
    if (!part) return [];
    left.push(...leftScripts(part).map((name) => `${name} in ${cwd}`));
    return servicesFromManifest(part, cwd, given);
  });
  const services = parts.length > 0 ? parts : servicesFromManifest(manifest, '.', given);
  if (services.length === 0) notes.push('there is no dev, start or serve script');
  if (left.length > 0) notes.push(`left out, although they may run a service: ${left.join(', ')}`);
  return { services, notes };
}
