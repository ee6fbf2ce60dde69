// Collects the facts from which the state of a service is explained.
import type { ServiceExplanation } from '../../protocol/service.ts';
import { explainService } from './explain.ts';
import type { SupervisedParts } from './service_parts.ts';
import { liveRun } from './state.ts';

type Explained = Pick<SupervisedParts, 'context' | 'door' | 'effects' | 'files' | 'life' | 'log'>;

/**
 * The last lines of the present or last run. One that its policy has restarted, and that has printed nothing
 * yet, has those of the run before, which tell why.
 */
async function lastLinesOf({ life, log }: Pick<Explained, 'life' | 'log'>): Promise<string[]> {
  const { end, state } = life.snapshot();
  const run = 'run' in state ? state.run.id : end?.run;
  const lines = run === undefined ? [] : await log.lastLines(run);
  const before = life.view().restarts > 0 ? end?.run : undefined;
  return lines.length === 0 && before !== undefined ? log.lastLines(before) : lines;
}

/**
 * The answer of GET /v1/services/{name}/explain. `startFollows`: after the stop under way. Fails
 * unknown_service.
 */
export async function explain(
  { context, door, effects, files, life, log }: Explained,
  startFollows: boolean,
): Promise<ServiceExplanation> {
  const stored = life.registered();
  const { spec } = stored;
  const live = liveRun(life.snapshot().state);
  const foreignHolder = live && (await effects.foreignHolder(live));
  const holder = await effects.portHolder(door.takenPort);
  // The door may have opened meanwhile.
  const doorPortHolder = door.takenPort === null ? null : holder;
  const { status, isDoorOpen: isDoorWanted } = life.view();
  const isDoorOpen = isDoorWanted && doorPortHolder === null;
  // Without a process, the listener on the port is the door.
  const isHeldByDoor = !live && isDoorOpen;
  const port = isHeldByDoor ? null : (live?.metadata ?? spec).port;
  const portHolder = doorPortHolder ?? foreignHolder ?? (await effects.portHolder(port));
  const { end, state } = life.snapshot();
  const lastLines = await lastLinesOf({ life, log });
  const droppedBytes = state.phase === 'lost' ? 0 : await effects.questions.droppedBytes();
  return explainService({
    spec,
    status,
    state,
    end,
    portHolder,
    foreignHolder,
    doorPortHolder,
    isDoorOpen,
    startFollows,
    failedWake: door.failedWake,
    watching: files.state,
    lastLines,
    path: effects.variable(stored, 'PATH'),
    droppedBytes,
    now: context.clock.now(),
  });
}
