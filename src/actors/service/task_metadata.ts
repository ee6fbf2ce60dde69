// The metadata about what a run of a task was built from: docs/reference.md "Tasks".
import type { InputHashTask } from '../../adapters/input_hash.ts';
import { fail } from '../../protocol/errors.ts';
import type { RunMetadata } from '../../protocol/host.ts';
import type { StoredService } from '../../protocol/service.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';

interface TaskFacts {
  /** With its placeholders filled in. */
  cwd: string;
  /** The last scheduled time it ran for; null: none. */
  slot: number | null;
  hashInputs: (task: InputHashTask) => Promise<string>;
}

/** Why inputs were not hashed. */
function whyNot({ code, message }: Failure): string {
  if (code === 'start_failed') return message;
  if (code === 'deadline') return 'its inputs could not be hashed in time';
  return `its inputs could not be hashed (${message})`;
}

/** The part of a run's metadata that a task has. Fails start_failed when its inputs cannot be read. */
export async function taskMetadata(
  { spec: { inputs = [], kind, name }, processHash = '' }: StoredService,
  { cwd, slot, hashInputs }: TaskFacts,
): Promise<Pick<RunMetadata, 'task'>> {
  if (kind !== 'task') return {};
  const had = slot === null ? {} : { slot };
  if (inputs.length === 0) return { task: { content: processHash, ...had } };
  try {
    const hash = await hashInputs({ cwd, globs: inputs });
    return { task: { content: `${processHash} ${hash}`, ...had } };
  } catch (error) {
    if (!isFailure(error)) throw error;
    throw fail('start_failed', `${name} cannot be started: ${whyNot(error)}`);
  }
}
