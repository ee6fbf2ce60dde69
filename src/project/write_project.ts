// Writes a project file, and beside it the schema that its first line names.
import { lstatSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from '../settings/replace_file.ts';
import { StateFileError } from '../settings/state_files.ts';
import { SCHEMA_FILE } from './imported_project.ts';
import { projectSchema } from './project_shape.ts';

/** The JSON Schema of a project file, as text. */
export const projectSchemaText = (): string => `${JSON.stringify(projectSchema(), null, 2)}\n`;

/**
 * Writes the schema beside a project file in `folder`. A cloned project may have links in its place: a linked
 * file is replaced and not followed, and a folder that leads elsewhere is refused with a StateFileError.
 */
function writeSchema(folder: string): void {
  const path = join(folder, SCHEMA_FILE);
  mkdirSync(dirname(path), { recursive: true });
  if (realpathSync(dirname(path)) !== join(realpathSync(folder), dirname(SCHEMA_FILE)))
    throw new StateFileError(`${dirname(path)}: is a link, and not a folder: remove it`);
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(path);
  replaceFile(path, projectSchemaText());
}

/** Writes the schema and the project file `path`. Throws the system's error, or a StateFileError. */
export function writeProject(path: string, text: string): void {
  writeSchema(dirname(path));
  replaceFile(path, text);
}
