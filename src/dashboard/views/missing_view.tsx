// The view of a service or agent that does not exist.
import { visibleLine } from '../../presentation/format.ts';
import { serviceList } from '../state/daemon.ts';
import { linkTo, type ViewName } from '../state/place.ts';

interface MissingViewProps {
  name: string;
  what: 'service' | 'agent';
  /** The link to the list of others. */
  list: { view: ViewName; text: string };
}

/** Says that there is no `what` of this name, unless the lists have not been read yet. */
export function MissingView({ name, what, list }: MissingViewProps) {
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">{visibleLine(name)}</h1>
      </header>
      <p class="empty">
        {serviceList.value === null
          ? 'Reading …'
          : `There is no ${what} of this name. It may have been removed.`}{' '}
        <a href={linkTo(list.view)}>{list.text}</a>
      </p>
    </section>
  );
}
