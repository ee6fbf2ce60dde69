// The metadata about what a run of a task was built from: docs/reference.md "Tasks".
import { createHash } from 'node:crypto';
import type { InputHashTask } from '../../adapters/input_hash.ts';
import { fail } from '../../protocol/errors.ts';
import type { RunMetadata } from '../../protocol/host.ts';
import type { StoredService } from '../../protocol/service.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';
import type { EnvFile } from './env_files.ts';

interface TaskFacts {
  /** With its placeholders filled in. */
  cwd: string;
  /** The last scheduled time it ran for; null: none. */
  slot: number | null;
  envFiles: readonly EnvFile[];
  hashInputs: (task: InputHashTask) => Promise<string>;
}

/** Why inputs were not hashed. */
function whyNot({ code, message }: Failure): string {
  if (code === 'start_failed') return message;
  if (code === 'deadline') return 'its inputs could not be hashed in time';
  return `its inputs could not be hashed (${message})`;
}

const textHash = (files: readonly EnvFile[]): string =>
  createHash('sha256')
    .update(JSON.stringify(files.map(({ text }) => text)))
    .digest('hex');

/** The part of a run's metadata that a task has. Fails start_failed when its inputs cannot be read. */
export async function taskMetadata(
  { spec: { inputs = [], kind, name }, processHash = '' }: StoredService,
  { cwd, slot, envFiles, hashInputs }: TaskFacts,
): Promise<Pick<RunMetadata, 'task'>> {
  if (kind !== 'task') return {};
  const had = slot === null ? {} : { slot };
  const parts = [processHash];
  try {
    if (inputs.length > 0) parts.push(await hashInputs({ cwd, globs: inputs }));
    if (envFiles.length > 0) parts.push(textHash(envFiles));
    return { task: { content: parts.join(' '), ...had } };
  } catch (error) {
    if (!isFailure(error)) throw error;
    throw fail('start_failed', `${name} cannot be started: ${whyNot(error)}`);
  }
}
