// What the importers make of other tools' files, and how that is written as a berth.yaml.
import { stringifyYaml } from '../adapters/yaml.ts';

/** A service as it will stand in the file; absent keys are left out. */
export interface ImportedService {
  name: string;
  cmd: string;
  cwd?: string | undefined;
  port: number | string;
  ready?: string | undefined;
  env?: Map<string, string> | undefined;
  env_file?: string | undefined;
  depends_on?: string[] | undefined;
  group?: string | undefined;
  restart?: string | undefined;
  stop?: { signal?: string | undefined; grace?: string | undefined } | undefined;
}

export interface ImportedProject {
  services: ImportedService[];
  /** What could not be carried over, one line each. */
  notes: string[];
}

const SCHEMA_PATH = '/schema/berth.json';

/** The line that tells editors where the schema is. */
export const schemaLine = (daemon: string): string =>
  `# yaml-language-server: $schema=${daemon}${SCHEMA_PATH}`;

/**
 * `text` as a project file has to write it, so that it comes out again as it is: nothing in it is to be
 * filled in.
 */
export const escapeInterpolation = (text: string): string => text.replace(/\$(?=[${])/g, '$$$$');

/** A name that the daemon accepts, made of one that it may not; `taken` gets it. */
export function toServiceName(text: string, taken: Set<string>): string {
  const base =
    text
      .toLowerCase()
      .replace(/[^a-z0-9_-]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 60) || 'service';
  let name = base;
  for (let number = 2; taken.has(name); number += 1) name = `${base}-${number}`;
  taken.add(name);
  return name;
}

/** The text of the project file; `head` are lines of comment. */
export function stringifyProject(services: readonly ImportedService[], head: readonly string[]): string {
  const rows = services.map(({ name, ...service }): [string, object] => {
    const keys = Object.entries(service).filter(([, value]) => value !== undefined);
    return [name, Object.fromEntries(keys)];
  });
  return `${head.join('\n')}\n${stringifyYaml({ services: new Map(rows) })}`;
}
