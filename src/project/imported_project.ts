// The result of an importer, and its text as a berth.yaml.

import { stringifyYaml } from '../adapters/yaml.ts';
import { AGENTS_GROUP, GROUP_NAME_PATTERN } from '../protocol/names.ts';

/** A service in the form of berth.yaml; undefined keys are omitted. */
export interface ImportedService {
  name: string;
  cmd: string;
  cwd?: string | undefined;
  /** null: none. */
  port: number | string | null;
  protocol?: 'tcp' | undefined;
  kind?: 'task' | undefined;
  schedule?: string | { cron: string; timezone: string } | undefined;
  ready?: string | ImportedCheck | undefined;
  live?: ImportedCheck | undefined;
  start_timeout?: string | undefined;
  env?: Map<string, string> | undefined;
  env_file?: string | undefined;
  depends_on?: string[] | Record<string, { condition: 'started' }> | undefined;
  group?: string | undefined;
  restart?: string | { policy: string; min_ms?: number; max_ms?: number; max?: number } | undefined;
  stop?: { command?: string; signal?: string; grace?: string } | undefined;
}

/** A check in the form of berth.yaml. */
export interface ImportedCheck {
  http?: string;
  status?: number[];
  exec?: string;
  log?: string;
  /** Milliseconds. */
  interval?: number;
  timeout?: number;
  failures?: number;
}

/** A dependency, and whether only its start is waited for. */
export interface ImportedDependency {
  name: string;
  startedOnly: boolean;
}

/** `depends_on` for `needs`: a list if all have the usual condition. */
export function dependsOn(needs: readonly ImportedDependency[]): ImportedService['depends_on'] {
  if (needs.length === 0) return undefined;
  if (!needs.some(({ startedOnly }) => startedOnly)) return needs.map(({ name }) => name);
  const rows = needs.map(({ name, startedOnly }) => [name, startedOnly ? { condition: 'started' } : {}]);
  return Object.fromEntries(rows);
}

export interface ImportedProject {
  services: ImportedService[];
  /** What the importer could not carry over, one line each. */
  notes: string[];
  /** The services whose port may as well be that of another one. */
  guessedPorts?: ReadonlySet<string>;
}

/** The schema for editors, relative to the project file: the same on every machine, without a daemon. */
export const SCHEMA_FILE = '.berth/berth.schema.json';

/** The comment that names the schema for editors. */
export const SCHEMA_LINE = `# yaml-language-server: $schema=${SCHEMA_FILE}`;

/** `text` escaped for a project file, so that interpolation leaves it unchanged. */
export const escapeInterpolation = (text: string): string => text.replace(/\$(?=[${])/g, '$$$$');

/**
 * `text` with `${NAME}` in place of `$NAME` where `isSet` knows the name. A project file leaves `$NAME` to
 * the shell.
 */
export const withBraces = (text: string, isSet: (name: string) => boolean): string =>
  text.replace(/\$\$|\$([A-Za-z_]\w*)/g, (whole, name?: string) =>
    name !== undefined && isSet(name) ? `\${${name}}` : whole,
  );

/** Makes a valid service name of `text` that is not in `taken`, and adds it there. */
export function toServiceName(text: string, taken: Set<string>): string {
  const base =
    text
      .toLowerCase()
      .replace(/[^a-z0-9_-]+/g, '-')
      .replace(/--+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 60) || 'service';
  let name = base;
  for (let number = 2; taken.has(name); number += 1) name = `${base}-${number}`;
  taken.add(name);
  return name;
}

/** `text` if it is a valid group name, or one made of it. */
export function toGroupName(text: string): string {
  if (text === AGENTS_GROUP) return text.toLowerCase();
  if (GROUP_NAME_PATTERN.test(text)) return text;
  const name = text.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^[-_]+|-+$/g, '');
  return name.slice(0, 63) || 'group';
}

/** The text of the project file, with the comment lines `head` first. */
export function stringifyProject(services: readonly ImportedService[], head: readonly string[]): string {
  const rows = services.map(({ name, ...service }): [string, object] => {
    const keys = Object.entries(service).filter(([, value]) => value !== undefined);
    return [name, Object.fromEntries(keys)];
  });
  return `${head.join('\n')}\n${stringifyYaml({ services: new Map(rows) })}`;
}
