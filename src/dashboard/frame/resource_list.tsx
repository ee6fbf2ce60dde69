// The list at the left: sections with their services, each with its state and its use of CPU and memory, and
// the workloads.
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Service } from '../../client/browser.ts';
import { countText, cpuText, memoryText } from '../../presentation/format.ts';
import { isOfAgents, listedName, type Section, takesBulkActions } from '../../presentation/sections.ts';
import { serviceList, shownState, usageOf } from '../state/daemon.ts';
import { isMarked, isMarking } from '../state/marks.ts';
import { clickedAgent, go, keptSearch, linkTo, setFilter, shownPlace } from '../state/place.ts';
import { type ListRow, listRows } from '../state/sections.ts';
import { selectedRowKey } from '../state/workload_tree.ts';
import { sectionActions } from './bulk_actions.tsx';
import { Button } from './button.tsx';
import { ClippedName } from './clipped_name.tsx';
import { Icon } from './icon.tsx';
import { MarksBar, markByClick } from './marks_bar.tsx';
import { crashText, StateShape } from './status_mark.tsx';
import { VirtualRows } from './virtual_rows.tsx';
import { WorkloadTree } from './workload_tree_rows.tsx';

const ROW_HEIGHT = 30;
/** The id of the search field, which `/` focuses. */
export const SEARCH_ID = 'find';

const runningText = ({ services: members }: Section): string =>
  `${members.filter(({ status }) => status === 'running').length}/${members.length}`;

function SectionHead({ section }: { section: Section }) {
  const { title, services } = section;
  const names = services.map(({ name }) => name).join(',');
  return (
    <div class="section-head">
      <h2 title={title}>{title}</h2>
      <span class="soft number" title="running of all">
        {runningText(section)}
      </span>
      <span class="row-actions">
        <Button
          kind="quiet"
          icon="logs"
          label={`logs of ${title}`}
          onPress={() => go({ view: 'logs', name: null, query: { names } })}
        />
        {sectionActions(section, ['start', 'restart', 'stop']).map(({ action, label, isOff, run }) => (
          <Button key={action} kind="quiet" icon={action} label={label} isOff={isOff} onPress={run} />
        ))}
      </span>
    </div>
  );
}

function UsageText({ name }: { name: string }) {
  const usage = usageOf(name).value;
  return (
    <span class="soft number row-usage">{usage && `${cpuText(usage.cpu)} · ${memoryText(usage.rssMB)}`}</span>
  );
}

/** What makes the row of a service a box that marks it. */
const boxOf = (name: string) => ({
  role: 'checkbox' as const,
  'aria-checked': isMarked(name),
  onClick: (event: MouseEvent) => {
    event.preventDefault();
    const shown = listRows.peek().flatMap((row) => (row.kind === 'service' ? row.key : []));
    markByClick(event, name, shown);
  },
});

/** Whether a mouse has clicked a link, not Enter or a finger, and to open it in this tab. */
const isPlainClick = (event: MouseEvent): boolean =>
  event.detail > 0 &&
  !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) &&
  !(event instanceof PointerEvent && event.pointerType === 'touch');

function ServiceRow({ service }: { service: Service }) {
  const { name } = service;
  const state = shownState(service);
  const { view, name: selected } = shownPlace.value;
  const isSelected = selected === name && (view === 'services' || view === 'agents');
  const alarm = state === 'blocked' ? state : crashText(service);
  const hasBox = isMarking.value && takesBulkActions(service);
  return (
    <a
      class="list-row"
      href={linkTo(isOfAgents(service) ? 'agents' : 'services', name, keptSearch())}
      aria-current={isSelected ? 'page' : undefined}
      data-name={name}
      title={`${name}: ${state}`}
      onClick={(event) => {
        if (isOfAgents(service) && isPlainClick(event)) clickedAgent.value = name;
      }}
      {...(hasBox && boxOf(name))}
    >
      <StateShape state={state} />
      <span class="row-name">
        <ClippedName name={listedName(service)} />
      </span>
      <span class="hidden-text">{state}</span>
      {alarm === '' ? <UsageText name={name} /> : <span class="row-alarm">{alarm}</span>}
    </a>
  );
}

function rowOf(row: ListRow) {
  if (row.kind === 'head') return <SectionHead section={row.section} />;
  return row.kind === 'service' ? <ServiceRow service={row.service} /> : <WorkloadTree row={row} />;
}

function SearchField() {
  return (
    <label class="search">
      <Icon name="search" />
      <span class="hidden-text">Search services, agents and workloads by name, group, state or port</span>
      <input
        id={SEARCH_ID}
        type="search"
        autocomplete="off"
        spellcheck={false}
        placeholder="Search"
        value={shownPlace.value.query['find'] ?? ''}
        onInput={(event) => setFilter('find', event.currentTarget.value)}
      />
      <kbd>/</kbd>
    </label>
  );
}

function EmptyList() {
  if (serviceList.value === null) return <p class="empty soft">Reading the list …</p>;
  if (serviceList.value.length > 0) return <p class="empty soft">Nothing has these words.</p>;
  return (
    <div class="empty">
      <p>No services yet.</p>
      <p class="soft">
        <code>berth up</code> in a project, or <code>berth add web npm run dev</code>.
      </p>
    </div>
  );
}

/** Moves the focus from a row to the selected one, so that Space, Enter and the actions mean the same row. */
function useFocusOnSelected(selected: string | null): RefObject<HTMLElement | null> {
  const list = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const focused = document.activeElement;
    if (selected === null || !(focused instanceof HTMLElement) || !focused.matches('.list-row')) return;
    const row = list.current?.querySelector<HTMLElement>('.list-row[aria-current]');
    if (row) row.focus({ preventScroll: true });
    // It is out of sight.
    else focused.blur();
  }, [selected]);
  return list;
}

/** The list of services, agents and workloads with its search. */
export function ResourceList() {
  const rows = listRows.value;
  const count = rows.filter(({ kind }) => kind === 'service').length;
  const list = useFocusOnSelected(selectedRowKey.value);
  return (
    <section ref={list} class="list" aria-label="services, agents and workloads">
      <SearchField />
      {rows.length === 0 ? (
        <EmptyList />
      ) : (
        <VirtualRows
          label={countText(count, 'service')}
          items={rows}
          rowHeight={ROW_HEIGHT}
          keyOf={({ key }) => key}
          row={rowOf}
          current={selectedRowKey.value}
        />
      )}
      <MarksBar />
    </section>
  );
}
