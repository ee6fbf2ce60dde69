// The files that docker compose and process-compose read together: a file and its overrides.
import { existsSync } from 'node:fs';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { parseYamlNodes, type YamlNode, YamlPositionError } from '../adapters/yaml.ts';
import { readTextFile } from '../settings/state_files.ts';
import { dotenvIn } from './import_dotenv.ts';
import { mergeNodes } from './merge_yaml.ts';

/** The deepest nesting of a file of another tool. */
export const MAX_DEPTH = 32;

/** The override files of each tool, in its search order; it reads the first. */
const COMPOSE_OVERRIDES = [
  'compose.override.yml',
  'compose.override.yaml',
  'docker-compose.override.yml',
  'docker-compose.override.yaml',
];
const PROCESS_COMPOSE_OVERRIDES = ['process-compose.override.yml', 'process-compose.override.yaml'];

/** `path`, and its override if the tool would find `path` by itself, relative to the folder of `path`. */
function withOverride(path: string, usual: RegExp, overrides: readonly string[]): string[] {
  const override = overrides.find((name) => existsSync(join(dirname(path), name)));
  const name = basename(path);
  return override !== undefined && usual.test(name) ? [name, override] : [name];
}

/** The files that COMPOSE_FILE of the shell, or of the `.env` in `folder`, names. */
export function listedComposeFiles(folder: string): string[] {
  const dotenv = dotenvIn(folder).variables;
  const setting = (key: string): string => process.env[key] ?? dotenv?.get(key) ?? '';
  const files = setting('COMPOSE_FILE').split(setting('COMPOSE_PATH_SEPARATOR') || delimiter);
  return files.filter((file) => file !== '');
}

/** The files that docker compose reads in the folder of the compose file `path`, relative to it. */
export function composeFiles(path: string): { files: string[]; notes: string[] } {
  const folder = dirname(path);
  const listed = listedComposeFiles(folder);
  if (listed.some((file) => resolve(folder, file) === resolve(path))) return { files: listed, notes: [] };
  if (listed.length === 0)
    return { files: withOverride(path, /^(docker-)?compose\.ya?ml$/, COMPOSE_OVERRIDES), notes: [] };
  const notes = [`the file is read alone: COMPOSE_FILE names ${listed.join(', ')}`];
  return { files: [basename(path)], notes };
}

/** The files that process-compose reads in the folder of the file `path`, relative to it. */
export const processComposeFiles = (path: string): string[] =>
  withOverride(path, /^process-compose\.ya?ml$/, PROCESS_COMPOSE_OVERRIDES);

/** A file and its text. */
interface Source {
  file: string;
  text: string;
}

/**
 * The texts of `files` in the folder of `path`. `text` is that of `path`, which is one of them. Throws what
 * the reading throws.
 */
export const readSources = (text: string, path: string, files: readonly string[]): Source[] =>
  files.map((file) => {
    const full = resolve(dirname(path), file);
    return { file, text: full === resolve(path) ? text : readTextFile(full) };
  });

function parseSource({ file, text }: Source): YamlNode {
  try {
    return parseYamlNodes(text, MAX_DEPTH);
  } catch (error) {
    if (!(error instanceof YamlPositionError)) throw error;
    throw new Error(`${file}:${error.at.line}:${error.at.column}: ${error.message}`);
  }
}

/** The documents of `sources` merged into one, the later over the earlier. Throws for one that is no YAML. */
export function mergeSources(sources: readonly Source[]): YamlNode {
  // The caller knows the name of the only one.
  const documents = sources.map((source) =>
    sources.length === 1 ? parseYamlNodes(source.text, MAX_DEPTH) : parseSource(source),
  );
  return documents.reduce((base, over) => mergeNodes(base, over));
}
