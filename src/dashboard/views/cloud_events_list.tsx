// The events of the cloud: what was requested, by whom, and how it ended. The newest come first.
import { useEffect } from 'preact/hooks';
import type { CloudEvent } from '../../client/browser.ts';
import { cloudEventParts, cloudEventTarget, isAlert } from '../../presentation/cloud_event_text.ts';
import { clockText, countText, dayText, visibleLine } from '../../presentation/format.ts';
import { StateShape } from '../frame/status_mark.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { cloudEventList, watchCloudEvents } from '../state/cloud_data.ts';
import { setFilter, shownPlace } from '../state/place.ts';

const ROW_HEIGHT = 30;
/** A name and a text below it. */
const PHONE_ROW_HEIGHT = 48;

/** The state that an event shows: failed for an alert, else the last word of its type. */
export const cloudEventState = ({ type }: CloudEvent): string =>
  isAlert(type) ? 'failed' : (type.split('.')[1]?.replace('auto_slept', 'asleep') ?? '');

function CloudEventRow({ event }: { event: CloudEvent }) {
  const { at, type } = event;
  const target = visibleLine(cloudEventTarget(event));
  const text = visibleLine(cloudEventParts(event).join(' '));
  return (
    <div class="event-row" data-type={type} title={`${type} ${target} ${text}`}>
      <time class="soft number" dateTime={at} title={dayText(at)}>
        {clockText(at)}
      </time>
      <StateShape state={cloudEventState(event)} />
      <span class="cloud-event-type">{visibleLine(type)}</span>
      <span class="event-subject">{target}</span>
      <span class="event-text soft">{text}</span>
    </div>
  );
}

function foundEvents(): readonly CloudEvent[] {
  const words = (shownPlace.value.query['q'] ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return (cloudEventList.value ?? []).filter((event) => {
    const parts = [event.type, cloudEventTarget(event), ...cloudEventParts(event)];
    const text = parts.join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** The newest events of the cloud, with a search. */
export function CloudEvents() {
  useEffect(watchCloudEvents, []);
  const found = foundEvents();
  return (
    <>
      <div class="tools">
        <input
          type="search"
          class="field cloud-search"
          aria-label="search the events of the cloud"
          placeholder="Name or word"
          value={shownPlace.value.query['q'] ?? ''}
          onInput={(event) => setFilter('q', event.currentTarget.value)}
        />
        <span class="soft number" role="status">
          {cloudEventList.value === null ? 'reading' : countText(found.length, 'event')}
        </span>
      </div>
      <VirtualRows
        label="Events of the cloud"
        isPlain
        items={found}
        rowHeight={ROW_HEIGHT}
        phoneRowHeight={PHONE_ROW_HEIGHT}
        keyOf={({ id }) => String(id)}
        row={(event) => <CloudEventRow event={event} />}
      />
    </>
  );
}
