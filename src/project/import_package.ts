// Imports package.json: its dev, start or serve script, or those of its workspaces.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseYamlNodes, type YamlNode } from '../adapters/yaml.ts';
import { readTextFile } from '../settings/state_files.ts';
import { type ImportedProject, type ImportedService, toServiceName } from './imported_project.ts';

interface Manifest {
  name?: unknown;
  scripts?: Record<string, unknown>;
  workspaces?: unknown;
}

/** The scripts that run a service, in order of preference. */
const SCRIPTS = ['dev', 'start', 'serve'] as const;

/** The program that runs the scripts, by its lock file. */
const SCRIPT_RUNNERS: readonly [lock: string, runner: string][] = [
  ['pnpm-lock.yaml', 'pnpm run'],
  ['yarn.lock', 'yarn run'],
  ['bun.lock', 'bun run'],
  ['bun.lockb', 'bun run'],
];

const runnerOf = (folder: string): string =>
  SCRIPT_RUNNERS.find(([lock]) => existsSync(join(folder, lock)))?.[1] ?? 'npm run';

/** The port that a script names; undefined if it names none. */
function portInScript(script: string): number | undefined {
  const [, port] = /(?:\bPORT=|--port[= ]|(?:^|\s)-p )(\d{2,5})\b/.exec(script) ?? [];
  return port === undefined ? undefined : Number(port);
}

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

function readManifest(folder: string): Manifest | undefined {
  const path = join(folder, 'package.json');
  return existsSync(path) ? JSON.parse(readTextFile(path)) : undefined;
}

function serviceFromManifest(
  manifest: Manifest,
  cwd: string,
  runner: string,
  taken: Set<string>,
): ImportedService | undefined {
  const script = SCRIPTS.find((name) => typeof manifest.scripts?.[name] === 'string');
  if (script === undefined) return undefined;
  const called = typeof manifest.name === 'string' ? manifest.name.replace(/^@[^/]*\//, '') : 'web';
  return {
    name: toServiceName(called, taken),
    cmd: `${runner} ${script}`,
    cwd: cwd === '.' ? undefined : cwd,
    port: portInScript(String(manifest.scripts?.[script])) ?? 'auto',
  };
}

/**
 * The services of the package in `folder`: one per workspace that has a dev, start or serve script, else the
 * package itself.
 */
export function importPackage(text: string, folder: string): ImportedProject {
  const manifest: Manifest = JSON.parse(text);
  const notes: string[] = [];
  const taken = new Set<string>();
  const runner = runnerOf(folder);
  const parts = workspaceFolders(folder, manifest, notes).flatMap((cwd) => {
    const part = readManifest(join(folder, cwd));
    return (part && serviceFromManifest(part, cwd, runner, taken)) ?? [];
  });
  const own = parts.length > 0 ? undefined : serviceFromManifest(manifest, '.', runner, taken);
  const services = own ? [own] : parts;
  if (services.length === 0) notes.push(`there is no ${SCRIPTS.join(', ')} script`);
  for (const { name, port } of services) {
    if (port === 'auto') notes.push(`${name}: its script names no port, so it must listen on $PORT`);
  }
  return { services, notes };
}
