// Events as rows of a timeline.

import { eventState, eventSubject, eventText, type LifecycleEvent } from '../../presentation/event_text.ts';
import { clockText, dayText, visibleLine } from '../../presentation/format.ts';
import { StateShape } from '../frame/status_mark.tsx';
import { linkTo } from '../state/place.ts';
import { isAgent } from '../state/sections.ts';

/** One event. `hasSubject`: whether the row names the service or agent that the event concerns. */
export function EventRow({ event, hasSubject = true }: { event: LifecycleEvent; hasSubject?: boolean }) {
  const subject = eventSubject(event);
  const { at } = event.data;
  const view = isAgent(subject) ? 'agents' : 'services';
  const isService = /^(service|agent)\./.test(event.type) && event.type !== 'service.removed';
  return (
    <div class="event-row" data-type={event.type}>
      {at !== undefined && isService ? (
        <a
          class="soft number"
          href={`#/logs?${new URLSearchParams({ names: subject, at })}`}
          title={`${dayText(at)}: log of ${subject} at this time`}
        >
          {clockText(at)}
        </a>
      ) : (
        <time class="soft number" dateTime={at} title={at === undefined ? '' : dayText(at)}>
          {at === undefined ? '' : clockText(at)}
        </time>
      )}
      <StateShape state={eventState(event)} />
      {hasSubject &&
        (isService ? (
          <a class="event-subject" href={linkTo(view, subject)}>
            {subject}
          </a>
        ) : (
          <span class="event-subject">{visibleLine(subject)}</span>
        ))}
      <span class="event-text">{visibleLine(eventText(event))}</span>
    </div>
  );
}
