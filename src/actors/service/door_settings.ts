// What the door of a service should do, from what is known of the service. Pure.
import type { DoorSettings, StoredDoor } from '../../protocol/doors.ts';
import { doorRule, type ServiceSpec } from '../../protocol/service.ts';
import { DOOR } from '../../settings/limits.ts';
import type { Known } from './reconcile.ts';
import { liveRun } from './state.ts';

/** Milliseconds of idleness after which a service with `sleep` sleeps. */
const idleMsOf = (spec: ServiceSpec): number | null => {
  const rule = doorRule(spec);
  return rule && Math.max(DOOR.minIdleMs, Math.round(rule.afterMinutes * 60_000));
};

/** Whether a process that was started before `sleep` was registered has the port of the door itself. */
export function isOnDoorPort({ state, stored }: Known): boolean {
  const metadata = liveRun(state)?.metadata;
  return metadata?.doorPort === undefined && metadata?.port === stored?.spec.port;
}

/** The settings the door should have now; null: it should be closed. `row` null: it is closed. */
export function doorSettings(row: StoredDoor | null, known: Known): DoorSettings | null {
  const { state, stored } = known;
  const run = liveRun(state);
  const behind = run?.metadata.doorPort === undefined ? null : run;
  const isWanted = row && stored && doorRule(stored.spec) && !isOnDoorPort(known);
  const port = behind?.metadata.doorPort ?? (isWanted ? stored.spec.port : null);
  if (port === null) return null;
  if (!behind || state.phase !== 'running' || row?.asleepAfter === behind.id || !behind.metadata.port)
    return { port, target: null, idleMs: null };
  const target = { run: behind.id, port: behind.metadata.port, pid: behind.pid };
  return { port, target, idleMs: behind.metadata.awake || !stored ? null : idleMsOf(stored.spec) };
}
