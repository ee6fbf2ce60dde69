// A cloud with a clock that tests turn, and policies as a client sends them.
import { PolicyBody } from '../../src/api/policies_shapes.ts';
import type { PolicyInput } from '../../src/protocol/policies.ts';
import { type TestClock, type VirtualClock, virtualClock } from './actors.ts';
import { auditOf, type Cloud } from './cloud.ts';
import { eventually } from './eventually.ts';
import type { Json } from './kube_double.ts';

/** A virtual clock whose time of the day can be set without time passing. */
export function settableClock(start: string): VirtualClock & { set(to: string): void } {
  const clock = virtualClock(Date.parse(start));
  let offset = 0;
  const now = (): number => Math.floor(clock.now()) + offset;
  return {
    ...clock,
    now,
    set: (to) => {
      offset += Date.parse(to) - now();
    },
  };
}

/** The policy of a body, as the API checks it. */
export const policyInput = (body: PolicyBody): PolicyInput => PolicyBody.parse(body) as PolicyInput;

/** The ends of operations in the audit log, oldest first, as `<who> <action> <workload> <result>`. */
export async function operationsOf(here: Cloud): Promise<string[]> {
  const ends = (await auditOf(here)).filter(({ type }: Json) => type.startsWith('operation.'));
  return ends.map(({ who, action, workload, result }: Json) => `${who} ${action} ${workload} ${result}`);
}

/**
 * Lets `firstMs` pass, then little by little, until `check` holds. What is due is done over a real network:
 * time that ran ahead of it would meet the deadlines of its asks.
 */
export async function advanceUntil<T>(
  clock: TestClock,
  firstMs: number,
  check: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  await clock.advance(firstMs);
  return eventually(async () => {
    await clock.advance(200);
    return check();
  });
}
