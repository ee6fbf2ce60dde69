// The importers, chosen by file name, and the files searched for in a folder.
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { composeConfig } from '../adapters/compose_config.ts';
import { readTextInput } from '../settings/state_files.ts';
import { importCompose } from './import_compose.ts';
import { importPackage } from './import_package.ts';
import { importProcessCompose } from './import_process_compose.ts';
import { importProcfile } from './import_procfile.ts';
import type { ImportedProject } from './imported_project.ts';

interface Importer {
  kind: string;
  /** The usual file names, in search order. */
  files: readonly string[];
  pattern: RegExp;
  read: (text: string, path: string) => ImportedProject;
}

/** In the order in which a folder is searched: files made to run services come first. */
export const IMPORTERS: readonly Importer[] = [
  {
    kind: 'Procfile',
    files: ['Procfile.dev', 'Procfile'],
    pattern: /^Procfile/,
    read: (text, path) => importProcfile(text, dirname(path)),
  },
  {
    kind: 'process-compose file',
    files: ['process-compose.yaml', 'process-compose.yml'],
    pattern: /^process-compose.*\.ya?ml$/,
    read: (text) => importProcessCompose(text),
  },
  {
    kind: 'compose file',
    files: ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'],
    pattern: /compose.*\.ya?ml$/,
    // A pipe cannot be read twice.
    read: (text, path) =>
      importCompose(text, basename(path), statSync(path).isFile() ? composeConfig(path) : null),
  },
  {
    kind: 'package.json',
    files: ['package.json'],
    pattern: /^package\.json$/,
    read: (text, path) => importPackage(text, dirname(path)),
  },
];

/** The files of `folder` that can be imported, in order of preference. */
export const importableFiles = (folder: string): string[] =>
  IMPORTERS.flatMap(({ files }) => files.map((name) => join(folder, name))).filter((path) =>
    existsSync(path),
  );

/** The importer for the file at `path` by its name; undefined if no importer matches. */
export const importerOf = (path: string): Importer | undefined =>
  IMPORTERS.find(({ pattern }) => pattern.test(basename(path)));

/**
 * Imports the file at `path` with the importer for its name; undefined if none matches. Throws what the
 * reading throws.
 */
export async function importProject(path: string): Promise<(ImportedProject & { kind: string }) | undefined> {
  const importer = importerOf(path);
  return importer && { kind: importer.kind, ...importer.read(await readTextInput(path), path) };
}
