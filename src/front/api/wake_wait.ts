// The wait of a wake for a Ready pod: docs/reference.md "Wake".
import type { QueryOf } from '../../api/operation.ts';
import type { workloads } from '../../api/workloads.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import type { AppContext } from './app_context.ts';

type WakeQuery = QueryOf<typeof workloads.wake>;

/** How long a wake waits for a Ready pod, in milliseconds; null: it does not. */
export const wakeWaitMs = ({ wait, timeout }: WakeQuery): number | null =>
  wait ? (timeout ?? CLOUD.defaultWakeWaitMs) : null;

/** Waits as the wake of workload `id` would have. Fails as that does. */
export async function waitAfterWake(app: AppContext, id: string, query: WakeQuery): Promise<void> {
  const waitMs = wakeWaitMs(query);
  if (waitMs === null) return;
  const deadlineMs = CLOUD.scaleTimeoutMs + waitMs;
  await app.ref('workloads').ask('untilReady', { id, waitMs }, { deadlineMs });
}
