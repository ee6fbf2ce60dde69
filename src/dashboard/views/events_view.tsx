// The timeline: events as they happen, the newest first.

import { eventSubject, eventText, type LifecycleEvent } from '../../presentation/event_text.ts';
import { countText } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { recentEvents } from '../state/daemon.ts';
import { setFilter, shownPlace } from '../state/place.ts';
import { EventRow } from './event_rows.tsx';

const ROW_HEIGHT = 30;
/** A name and a text below it. */
const PHONE_ROW_HEIGHT = 48;
/** The filter chips: each has a name and the event types that it selects. */
const KINDS: readonly [name: string, types: readonly string[]][] = [
  [
    'trouble',
    [
      'service.crashed',
      'service.unhealthy',
      'service.wake_failed',
      'port.conflict',
      'cluster.refused',
      'cluster.expiring',
    ],
  ],
  ['starts and ends', ['service.started', 'service.stopped', 'service.crashed', 'service.completed']],
  ['sleep', ['service.slept', 'service.woke', 'service.wake_failed']],
  ['changes', ['service.registered', 'service.removed', 'service.changed']],
  ['agents', ['agent.state']],
  ['clusters', ['cluster.refused', 'cluster.accepted', 'cluster.expiring']],
];

function wantedEvents(): readonly LifecycleEvent[] {
  const { kind = '', q = '', upto = '' } = shownPlace.value.query;
  const types = KINDS.find(([name]) => name === kind)?.[1];
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  return recentEvents.value.filter((event) => {
    if (types && !types.includes(event.type)) return false;
    if (upto !== '' && event.id !== null && event.id > Number(upto)) return false;
    const text = `${eventSubject(event)} ${event.type} ${eventText(event)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function EventTools({ count, newest }: { count: number; newest: number | null }) {
  const { kind = '', q = '', upto = '' } = shownPlace.value.query;
  const isHeld = upto !== '';
  return (
    <div class="tools">
      <input
        type="search"
        class="field"
        aria-label="search the events"
        placeholder="Name or word"
        autocomplete="off"
        value={q}
        onInput={(event) => setFilter('q', event.currentTarget.value)}
      />
      <fieldset class="chips" aria-label="kinds of events">
        {KINDS.map(([name]) => (
          <button
            type="button"
            key={name}
            class="chip"
            aria-pressed={kind === name}
            onClick={() => setFilter('kind', kind === name ? '' : name)}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <span class="soft number" role="status">
        {isHeld ? 'held' : 'live'} · {countText(count, 'event')}
      </span>
      <span class="tools-end">
        <Button
          kind="quiet"
          icon={isHeld ? 'start' : 'pause'}
          label={isHeld ? 'follow new events' : 'hold the list'}
          isPressed={isHeld}
          onPress={() => setFilter('upto', isHeld ? '' : String(newest ?? ''))}
        />
      </span>
    </div>
  );
}

/** The view of all events. */
export function EventsView() {
  const events = wantedEvents();
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Events</h1>
      </header>
      <EventTools count={events.length} newest={recentEvents.value[0]?.id ?? null} />
      {events.length === 0 ? (
        <p class="empty soft">No event fits.</p>
      ) : (
        <VirtualRows
          label="Events"
          items={events}
          rowHeight={ROW_HEIGHT}
          phoneRowHeight={PHONE_ROW_HEIGHT}
          keyOf={({ id }) => String(id)}
          row={(event) => <EventRow event={event} />}
        />
      )}
    </section>
  );
}
