// The env files of a service, read at each start: docs/reference.md "Environment of a process".
import { isUtf8 } from 'node:buffer';
import { closeSync, constants, fstatSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { unansweredReason } from '../../adapters/answering_path.ts';
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import { fail } from '../../protocol/errors.ts';
import { ENV_KEY_PATTERN } from '../../protocol/names.ts';
import type { ServiceSpec } from '../../protocol/service.ts';
import type { Failure } from '../../runtime/actor.ts';
import { type EnvLookup, parseEnvText } from '../../settings/env_text.ts';
import { TEXT_FILE } from '../../settings/limits.ts';
import { openRegularFile } from '../../settings/state_files.ts';

/** A file as it was read. */
export interface EnvFile {
  path: string;
  text: string;
}

/**
 * Reads a file without ever blocking. Throws, with the reason, for anything but a regular file of reasonable
 * size in UTF-8.
 */
function readFile(path: string): string {
  const fd = openRegularFile(path, constants.O_RDONLY);
  try {
    const { size } = fstatSync(fd);
    if (size > TEXT_FILE.maxBytes) throw new Error(`${path} is larger than ${TEXT_FILE.maxBytes} bytes`);
    const bytes = readFileSync(fd);
    if (!isUtf8(bytes)) throw new Error(`${path} is not UTF-8`);
    return bytes.toString();
  } finally {
    closeSync(fd);
  }
}

/** The variables in a file. No message contains their values. Throws with the reason. */
function rowsOf({ path, text }: EnvFile, lookup: EnvLookup): EnvironmentRows {
  return parseEnvText(text, lookup).map(([key, value]) => {
    if (!ENV_KEY_PATTERN.test(key) || key.startsWith('BERTH_'))
      throw new Error(`${path} sets ${JSON.stringify(key.slice(0, 64))}, which is no name for a variable`);
    if (value.includes('\0')) throw new Error(`${path} has a NUL in the value of ${key}`);
    return [key, value];
  });
}

/** The failure of a start for a file that cannot be used. */
function unusable(name: string, path: string, error: unknown): Failure {
  const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
  const reason = isMissing ? `${path} does not exist` : String(error).replace(/^\w*Error: /, '');
  return fail('start_failed', `${name} could not be started: its envFile ${reason}`, {
    hint: 'Fix what the message names, then start it again.',
  });
}

/** The files of a service, in their order. Fails start_failed. */
export async function readEnvFiles({
  cwd,
  envFile,
  name,
}: Pick<ServiceSpec, 'cwd' | 'envFile' | 'name'>): Promise<EnvFile[]> {
  const files: EnvFile[] = [];
  for (const file of envFile) {
    const path = resolve(cwd, file);
    try {
      const unanswered = await unansweredReason(path);
      if (unanswered !== null) throw new Error(unanswered);
      files.push({ path, text: readFile(path) });
    } catch (error) {
      throw unusable(name, path, error);
    }
  }
  return files;
}

/**
 * The variables of all files of the service `name`; later files win. They may refer to those of earlier files
 * and of `base`. Fails start_failed.
 */
export function envFileRows(name: string, files: readonly EnvFile[], base: EnvironmentRows): EnvironmentRows {
  const known = new Map(base);
  const rows: EnvironmentRows = [];
  for (const file of files) {
    try {
      const ofFile = rowsOf(file, (key, own) => own ?? known.get(key));
      for (const [key, value] of ofFile) known.set(key, value);
      rows.push(...ofFile);
    } catch (error) {
      throw unusable(name, file.path, error);
    }
  }
  return rows;
}
