// Events as rows of a time line.
import { StateShape } from '../frame/status_mark.tsx';
import type { LifecycleEvent } from '../state/daemon.ts';
import { clockText, dayText, visibleLine } from '../state/format.ts';
import { linkTo } from '../state/place.ts';
import { isAgent } from '../state/sections.ts';
import { eventState, eventSubject, eventText } from './event_text.ts';

/** One event. `hasSubject`: whether it says whom it has happened to. */
export function EventRow({ event, hasSubject = true }: { event: LifecycleEvent; hasSubject?: boolean }) {
  const subject = eventSubject(event);
  const { at } = event.data;
  const view = isAgent(subject) ? 'agents' : 'services';
  const isService = /^(service|agent)\./.test(event.type) && event.type !== 'service.removed';
  return (
    <div class="event-row" data-type={event.type}>
      <time class="soft number" dateTime={at} title={at === undefined ? '' : dayText(at)}>
        {at === undefined ? '' : clockText(at)}
      </time>
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
