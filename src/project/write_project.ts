// Writes a project file, and beside it the schema that its first line names.
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from '../settings/replace_file.ts';
import { SCHEMA_FILE } from './imported_project.ts';
import { projectSchema } from './project_shape.ts';

/** The JSON Schema of a project file, as text. */
export const projectSchemaText = (): string => `${JSON.stringify(projectSchema(), null, 2)}\n`;

/** Writes `text` to the project file `path`, and the schema. Throws the system's error. */
export function writeProject(path: string, text: string): void {
  const schema = join(dirname(path), SCHEMA_FILE);
  mkdirSync(dirname(schema), { recursive: true });
  replaceFile(schema, projectSchemaText());
  replaceFile(path, text);
}
