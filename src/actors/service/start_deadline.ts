// How long whoever asks for a start waits for it.
import { fail } from '../../protocol/errors.ts';
import type { ServiceProtocol, ServiceSpec, StartResult } from '../../protocol/service.ts';
import type { Clock, MessageOf } from '../../runtime/actor.ts';
import { withTimeout } from '../../runtime/deferred.ts';
import type { Run } from './run.ts';

/** How long the ready-check may take, in milliseconds. An agent that nobody waits for may take as long as it likes: null. */
export function startDeadline(
  spec: ServiceSpec,
  { timeoutMs, wait }: MessageOf<ServiceProtocol, 'start'>,
): number | null {
  return spec.agent && !wait ? null : (timeoutMs ?? spec.startTimeout);
}

/**
 * Waits for a start that somebody else has asked for, no longer than `ms`: then it fails ready_timeout. Whatever comes of it,
 * that start goes on.
 */
export async function awaitSharedStart(
  clock: Clock,
  name: string,
  { ready }: Run,
  ms: number,
): Promise<StartResult> {
  const answer = await withTimeout(ms, ready.promise, clock);
  if (answer) return answer;
  throw fail('ready_timeout', `${name} is still starting after ${ms} ms; its start goes on`);
}
