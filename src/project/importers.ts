// The importers, chosen by file name, and the files searched for in a folder.
import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { readTextInput } from '../settings/state_files.ts';
import { listedComposeFiles } from './compose_files.ts';
import { withDistinctPorts } from './distinct_ports.ts';
import { importCompose } from './import_compose.ts';
import { dotenvIn } from './import_dotenv.ts';
import { importPackage } from './import_package.ts';
import { importProcessCompose } from './import_process_compose.ts';
import { importProcfile } from './import_procfile.ts';
import type { ImportedProject } from './imported_project.ts';

interface Importer {
  kind: string;
  /** The usual file names, in search order. */
  files: readonly string[];
  /** The files that a setting names in a folder, instead of the usual ones. */
  listed?: (folder: string) => string[];
  pattern: RegExp;
  /** The port of a service whose port is unknown. */
  unknownPort: 'auto' | null;
  read: (text: string, path: string) => ImportedProject;
}

/** In the order in which a folder is searched: files made to run services come first. */
export const IMPORTERS: readonly Importer[] = [
  {
    kind: 'Procfile',
    files: ['Procfile.dev', 'Procfile'],
    pattern: /^Procfile/,
    unknownPort: 'auto',
    read: (text, path) => importProcfile(text, dirname(path)),
  },
  {
    kind: 'process-compose file',
    files: ['process-compose.yaml', 'process-compose.yml'],
    pattern: /^process-compose.*\.ya?ml$/,
    unknownPort: null,
    read: (text, path) => importProcessCompose(text, path),
  },
  {
    kind: 'compose file',
    files: ['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml'],
    listed: listedComposeFiles,
    pattern: /compose.*\.ya?ml$/,
    unknownPort: null,
    read: (text, path) => importCompose(text, path),
  },
  {
    kind: 'package.json',
    files: ['package.json'],
    pattern: /^package\.json$/,
    unknownPort: 'auto',
    read: (text, path) => importPackage(text, dirname(path)),
  },
];

/** The importer for the file at `path` by its name; undefined if no importer matches. */
export const importerOf = (path: string): Importer | undefined =>
  IMPORTERS.find(({ pattern }) => pattern.test(basename(path)));

/** The files of `folder` that can be imported, in order of preference. */
export function importableFiles(folder: string): string[] {
  const found = IMPORTERS.flatMap((importer) => {
    const listed = (importer.listed?.(folder) ?? []).map((file) => resolve(folder, file));
    // The project is the folder of its file.
    const own = listed.filter((path) => dirname(path) === resolve(folder) && importerOf(path) === importer);
    return [...own, ...importer.files.map((name) => join(folder, name))];
  });
  return [...new Set(found)].filter((path) => existsSync(path));
}

/**
 * Imports the file at `path` with the importer for its name; undefined if none matches. Each port is that of
 * one service. Throws what the reading throws.
 */
export async function importProject(path: string): Promise<(ImportedProject & { kind: string }) | undefined> {
  const importer = importerOf(path);
  if (!importer) return undefined;
  const { kind, read, unknownPort } = importer;
  const imported = read(await readTextInput(path), path);
  const { variables } = dotenvIn(dirname(path));
  const variable = (name: string) => process.env[name] ?? variables?.get(name);
  return { kind, ...withDistinctPorts(imported, { unknownPort, variable }) };
}
