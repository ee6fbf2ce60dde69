// How a service is stopped: docs/reference.md "Stop".
import type { StopRequest } from '../../protocol/host.ts';
import { doorRule, type ServiceSpec, type StoredService } from '../../protocol/service.ts';
import { SERVICE } from '../../settings/limits.ts';

export type StopSettings = Pick<StopRequest, 'signal' | 'graceMs' | 'command'>;

/** The port that a stopped service's process must have released; null: its door has that port. */
export const ownPort = (spec: ServiceSpec): number | null => (doorRule(spec) ? null : spec.port);

/** How to stop a service. `stored` null: it is not registered. `graceMs` null: its own grace period. */
export function stopSettings(stored: StoredService | null, graceMs: number | null): StopSettings {
  const { stopSignal = 'SIGTERM', stopGrace = SERVICE.defaultStopGraceMs, stop } = stored?.spec ?? {};
  return { signal: stopSignal, graceMs: graceMs ?? stopGrace, ...(stop && { command: stop }) };
}
