// The starts, restarts and wakes that this tab has requested. Their requests do not wait until the service is
// ready or the task has completed; the events tell the outcome.
import { eventSubject, type LifecycleEvent } from '../../presentation/event_text.ts';
import { lastEvent, recentEvents, serviceByName } from './daemon.ts';
import { client } from './session.ts';

interface FollowedStart {
  /** The runs of before, whose events may still arrive. */
  earlier: Set<string>;
  /** It is restarted: the process of before, whose run may be unknown here, ends first. */
  endsFirst: boolean;
  /** It has started: what ends now has failed only if it is a task. */
  isUp: boolean;
  onFailed: (text: string) => void;
}

const LAST_LINES = 10;

const starts = new Map<string, FollowedStart>();

/**
 * Calls `onFailed`, with the reason, if the start of `name` that `action` requests next fails after its
 * response. Returns what follows the start before it again, for when this one is refused.
 */
export function followStart(
  name: string,
  action: 'start' | 'restart' | 'wake',
  onFailed: FollowedStart['onFailed'],
): () => void {
  const before = starts.get(name);
  const known = serviceByName.peek().get(name);
  const own = recentEvents.peek().filter((event) => eventSubject(event) === name);
  const earlier = new Set(own.flatMap(({ data }) => data.run ?? []));
  const endsFirst = action === 'restart' && known?.pid !== undefined;
  // A wake leaves what runs alone.
  const isUp = action === 'wake' && known?.status === 'running';
  starts.set(name, { earlier, endsFirst, isUp, onFailed });
  return () => {
    if (before) starts.set(name, before);
    else starts.delete(name);
  };
}

/** Follows the start of `name` no longer. */
export const unfollowStart = (name: string): boolean => starts.delete(name);

/** Says why the start has failed, if it has. */
async function report(name: string, { isUp, onFailed }: FollowedStart): Promise<void> {
  try {
    if (isUp && (await client.service(name)).kind !== 'task') return;
    const { reason, lastLines } = await client.explain(name);
    const what = isUp ? 'It has not completed.' : 'It ended, or was stopped, before it was ready.';
    onFailed([what, reason, ...lastLines.slice(-LAST_LINES)].join('\n'));
  } catch {
    // The list shows the state.
  }
}

function onEvent(event: LifecycleEvent): void {
  const name = eventSubject(event);
  const start = starts.get(name);
  if (!start) return;
  const run = event.data.run ?? '';
  if (start.endsFirst && (event.type === 'service.stopped' || event.type === 'service.crashed')) {
    start.endsFirst = false;
    start.isUp = false;
    start.earlier.add(run);
  }
  if (start.earlier.has(run)) return;
  switch (event.type) {
    case 'service.started':
      start.isUp = true;
      break;
    case 'service.completed':
    case 'service.removed':
      starts.delete(name);
      break;
    case 'service.crashed':
    case 'service.stopped':
      starts.delete(name);
      void report(name, start);
      break;
  }
}

lastEvent.subscribe((event) => {
  if (event) onEvent(event);
});
