// The result of an importer, and its text as a berth.yaml.

import { stringifyYaml } from '../adapters/yaml.ts';
import type { Dependency } from '../protocol/dependency_order.ts';

/** A service as berth.yaml has it; undefined keys are left out. */
export interface ImportedService {
  name: string;
  cmd: string;
  cwd?: string | undefined;
  /** null: none. */
  port: number | string | null;
  ready?: string | undefined;
  env?: Map<string, string> | undefined;
  env_file?: string | undefined;
  depends_on?: Dependency[] | undefined;
  kind?: 'task' | undefined;
  group?: string | undefined;
  restart?: string | undefined;
  stop?: { signal?: string | undefined; grace?: string | undefined } | undefined;
}

export interface ImportedProject {
  services: ImportedService[];
  /** What the importer could not carry over, one line each. */
  notes: string[];
}

/** The schema for editors, relative to the project file: the same on every machine, without a daemon. */
export const SCHEMA_FILE = '.berth/berth.schema.json';

/** The comment that names the schema for editors. */
export const SCHEMA_LINE = `# yaml-language-server: $schema=${SCHEMA_FILE}`;

/**
 * `text` as a project file has to write it, so that it comes out again as it is: nothing in it is to be
 * filled in.
 */
export const escapeInterpolation = (text: string): string => text.replace(/\$(?=[${])/g, '$$$$');

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

/** The text of the project file, with the comment lines `head` first. */
export function stringifyProject(services: readonly ImportedService[], head: readonly string[]): string {
  const rows = services.map(({ name, ...service }): [string, object] => {
    const keys = Object.entries(service).filter(([, value]) => value !== undefined);
    return [name, Object.fromEntries(keys)];
  });
  return `${head.join('\n')}\n${stringifyYaml({ services: new Map(rows) })}`;
}
