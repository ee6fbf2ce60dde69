// The `.env` beside an imported file, which foreman and process-compose put into every process.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnvText } from '../settings/env_text.ts';
import { readTextFile } from '../settings/state_files.ts';
import type { ImportedService } from './imported_project.ts';

export interface ImportedDotenv {
  /** The path, relative to the folder; undefined without the file. */
  file: string | undefined;
  /** null for one that cannot be read here. */
  variables: ReadonlyMap<string, string> | null;
}

/**
 * The variables in the file `path`. A FIFO is not even opened: it gives its text once. null if it cannot be
 * read: the reader of the project says why.
 */
function variablesIn(path: string): ImportedDotenv['variables'] {
  try {
    if (!statSync(path).isFile()) return null;
    return new Map(parseEnvText(readTextFile(path), (key, own) => process.env[key] ?? own));
  } catch {
    return null;
  }
}

/** The `.env` in `folder`. */
export function dotenvIn(folder: string): ImportedDotenv {
  const path = join(folder, '.env');
  return existsSync(path)
    ? { file: '.env', variables: variablesIn(path) }
    : { file: undefined, variables: new Map() };
}

/** The port of the service `name` in its environment. */
export const portPlaceholder = (name: string): string => `\${port.${name}}`;

/**
 * `service` with the variables of `dotenv`, except for a PORT there if the service has a port: it would give
 * all services the same one.
 */
export function withDotenv(service: ImportedService, { file, variables }: ImportedDotenv): ImportedService {
  if (file === undefined) return service;
  const { name, port, env } = service;
  const isPortSet = variables === null || variables.has('PORT');
  if (!isPortSet || port === null || env?.has('PORT')) return { ...service, env_file: file };
  return { ...service, env_file: file, env: new Map([...(env ?? []), ['PORT', portPlaceholder(name)]]) };
}

/** A note if `withDotenv` has overridden a PORT. */
export const dotenvNotes = (services: readonly ImportedService[]): string[] =>
  services.some(({ name, env }) => env?.get('PORT') === portPlaceholder(name))
    ? ['PORT in .env is overridden: each process has its own port, which `port: 5000` can set']
    : [];
