// A table of all services: their state, what they use, and their addresses.
import { useMemo } from 'preact/hooks';
import type { Service } from '../../client/browser.ts';
import { compareNames, countText, cpuText, memoryText, spanText } from '../../presentation/format.ts';
import {
  isNamed,
  isOfAgents,
  isStackHook,
  listedName,
  takesBulkActions,
} from '../../presentation/sections.ts';
import { requestAction } from '../frame/action_question.tsx';
import { BulkActions } from '../frame/bulk_actions.tsx';
import { Button } from '../frame/button.tsx';
import { ClippedName } from '../frame/clipped_name.tsx';
import { MarkBox, MarkButton } from '../frame/marks_bar.tsx';
import { crashText, StateLabel } from '../frame/status_mark.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { type ServiceAction, underWay } from '../state/actions.ts';
import { addressOf, copyAddress, isPage } from '../state/addresses.ts';
import { serviceList, shownState, usageOf } from '../state/daemon.ts';
import { isMarked, isMarking } from '../state/marks.ts';
import { go, linkTo, setFilter, shownPlace } from '../state/place.ts';
import { sections, statusCounts } from '../state/sections.ts';
import { tenSeconds } from '../state/ticker.ts';

const ROW_HEIGHT = 36;
const AT_REST: ReadonlySet<string> = new Set(['stopped', 'crashed', 'completed', 'sleeping']);
const ORDER = ['crashed', 'starting', 'running', 'sleeping', 'completed', 'stopped', 'stopping'];

/** Whether a service can be started, because none of its processes runs. */
export const isAtRest = ({ status }: Service): boolean => AT_REST.has(status);

/** The buttons that every row has. Stop is always on, because it also cancels a pending restart. */
function RowActions({ service }: { service: Service }) {
  const { name } = service;
  const one = (action: ServiceAction, isOff: boolean) => (
    <Button
      kind="quiet"
      icon={action}
      label={`${action} ${name}`}
      isOff={isOff || underWay.value.has(`${action} ${name}`)}
      onPress={() => requestAction(action, name)}
    />
  );
  return (
    <span class="cell-actions">
      {one('start', !isAtRest(service) || isStackHook(service))}
      {one('stop', false)}
      {one('restart', isStackHook(service))}
    </span>
  );
}

interface AddressLinkProps {
  service: Service;
  /** Absent: unknown. Then services are assumed to listen and agents are not, as most have no server. */
  isListening?: boolean;
}

/** A service's address, as a link if a web page may answer there. */
function AddressLink({ service, isListening = !isOfAgents(service) }: AddressLinkProps) {
  const address = addressOf(service);
  if (address === null) return <span class="soft">no port</span>;
  const text = address.replace(/^http:\/\//, '').replace(/\/$/, '');
  if (!isListening || !isPage(service)) return <span class="soft address">{text}</span>;
  return (
    <a class="address" href={address} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

/** The address of a service with a button that copies it. */
export function ServiceAddress(props: AddressLinkProps) {
  const { service } = props;
  return (
    <span class="address-box">
      <AddressLink {...props} />
      {addressOf(service) !== null && (
        <Button
          kind="quiet"
          icon="copy"
          label={`copy the address of ${service.name}`}
          keyHint="y"
          onPress={() => copyAddress(service.name)}
        />
      )}
    </span>
  );
}

function UsageCells({ name }: { name: string }) {
  const usage = usageOf(name).value;
  return (
    <>
      <span class="number cell-cpu">{cpuText(usage?.cpu)}</span>
      <span class="number cell-memory">{memoryText(usage?.rssMB)}</span>
    </>
  );
}

interface TableRow {
  title: string;
  service: Service;
}

function Row({ service, title, shown }: TableRow & { shown: readonly string[] }) {
  const { name, startedAt, restarts } = service;
  const uptime = startedAt === undefined ? '' : spanText(tenSeconds.value - Date.parse(startedAt));
  return (
    <div class="table-row" data-name={name} data-marked={isMarked(name)}>
      <span class="cell-state">
        {isMarking.value && takesBulkActions(service) && <MarkBox name={name} shown={shown} />}
        <StateLabel state={shownState(service)} detail={crashText(service)} />
      </span>
      <a class="cell-name" href={linkTo('services', name, shownPlace.value.query)} title={name}>
        <ClippedName name={listedName(service)} />
      </a>
      <span class="soft cell-section" title={title}>
        {title}
      </span>
      <span class="number soft cell-uptime">{uptime}</span>
      <span class="number soft cell-restarts">{restarts > 0 ? restarts : ''}</span>
      <UsageCells name={name} />
      <AddressLink service={service} />
      <RowActions service={service} />
    </div>
  );
}

/** Shows the logs of the listed services. */
function LogsButton({ services }: { services: readonly Service[] }) {
  const names = services.flatMap((service) => (isOfAgents(service) ? [] : service.name));
  return (
    <Button
      icon="logs"
      text="logs"
      label={`logs of ${countText(names.length, 'shown service')}`}
      isOff={names.length === 0}
      onPress={() => go({ view: 'logs', name: null, query: { names: names.join(',') } })}
    />
  );
}

function Counts() {
  const counts = statusCounts.value;
  const find = shownPlace.value.query['find'] ?? '';
  return (
    <fieldset class="counts" aria-label="services by state">
      {ORDER.filter((status) => counts.has(status)).map((status) => (
        <button
          type="button"
          key={status}
          class="count"
          aria-pressed={find === status}
          onClick={() => setFilter('find', find === status ? '' : status)}
        >
          <span class="number">{counts.get(status)}</span> <StateLabel state={status} />
        </button>
      ))}
    </fieldset>
  );
}

interface Column {
  title: string;
  class: string;
  /** Compares rows in the order of the first click; absent: the column does not sort. */
  sort?: (one: TableRow, other: TableRow) => number;
}

const byNumber =
  (measure: (service: Service) => number) =>
  (one: TableRow, other: TableRow): number =>
    measure(other.service) - measure(one.service);

const urgency = ({ service }: TableRow): number => (service.status === 'crashed' ? 0 : 1);
const byUrgency = (one: TableRow, other: TableRow): number => urgency(one) - urgency(other);

// Sorting uses the measurements of that moment. Rows that moved with each measurement would be unreadable.
const COLUMNS: readonly Column[] = [
  {
    title: 'State',
    class: '',
    sort: (one, other) => ORDER.indexOf(one.service.status) - ORDER.indexOf(other.service.status),
  },
  { title: 'Name', class: '', sort: (one, other) => compareNames(one.service.name, other.service.name) },
  {
    title: 'Stack or group',
    class: 'cell-section',
    sort: (one, other) => compareNames(one.title, other.title),
  },
  {
    title: 'Uptime',
    class: 'cell-uptime',
    sort: byNumber(({ startedAt }) => (startedAt === undefined ? -Infinity : -Date.parse(startedAt))),
  },
  { title: 'Restarts', class: 'cell-restarts', sort: byNumber(({ restarts }) => restarts) },
  { title: 'CPU', class: 'cell-cpu', sort: byNumber(({ name }) => usageOf(name).peek()?.cpu ?? -1) },
  { title: 'Memory', class: 'cell-memory', sort: byNumber(({ name }) => usageOf(name).peek()?.rssMB ?? -1) },
  { title: 'Address', class: '' },
];

/** The head of a column. A second click reverses the order, a third one removes it. */
function ColumnHead({ column: { title, class: name, sort } }: { column: Column }) {
  const chosen = shownPlace.value.query['sort'] ?? '';
  if (!sort) return <span class={name}>{title}</span>;
  const isChosen = chosen === title || chosen === `-${title}`;
  const next = chosen === title ? `-${title}` : chosen === `-${title}` ? '' : title;
  return (
    <button
      type="button"
      class={`column-head ${name}`}
      aria-pressed={isChosen}
      aria-label={`sort by ${title.toLowerCase()}`}
      onClick={() => setFilter('sort', next)}
    >
      {title}
      {isChosen && <span aria-hidden="true">{chosen === title ? ' ↓' : ' ↑'}</span>}
    </button>
  );
}

function Head({ services }: { services: readonly Service[] }) {
  return (
    <div class="table-row table-head">
      {COLUMNS.map((column) => (
        <ColumnHead key={column.title} column={column} />
      ))}
      <BulkActions services={services} which="shown" />
    </div>
  );
}

/** Commands to begin with, and what each does. */
const BEGINNINGS: readonly (readonly [command: string, does: string])[] = [
  ['berth up', 'in a project: starts what its berth.yaml, Procfile or package.json names'],
  ['berth add web npm run dev', 'registers one command as a service'],
  ['berth agent spinup bot --type claude', 'starts an agent in a terminal of its own'],
  ['berth k8s add', 'shows the workloads of a cluster, which can sleep and wake'],
];

/** The content of a page without services. */
function Welcome() {
  return (
    <dl class="welcome">
      {BEGINNINGS.map(([command, does]) => (
        <div key={command}>
          <dt>
            <code>{command}</code>
          </dt>
          <dd class="soft">{does}</dd>
        </div>
      ))}
    </dl>
  );
}

function sortedRows(rows: TableRow[], chosen: string): TableRow[] {
  const sort = COLUMNS.find(({ title }) => title === chosen.replace(/^-/, ''))?.sort ?? byUrgency;
  const sign = chosen.startsWith('-') ? -1 : 1;
  return rows.sort((one, other) => sign * sort(one, other));
}

/** The table of the services that match the search. */
export function Overview() {
  const shown = sections.value;
  const chosen = shownPlace.value.query['sort'] ?? '';
  const rows = useMemo(
    () =>
      sortedRows(
        shown.flatMap(({ key, title, services }) =>
          services.map((service) => ({ title: isNamed({ key }) ? title : '', service })),
        ),
        chosen,
      ),
    [shown, chosen],
  );
  const services = useMemo(() => rows.map(({ service }) => service), [rows]);
  const names = services.map(({ name }) => name);
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Services</h1>
        {services.length > 0 && (
          <>
            <MarkButton />
            <LogsButton services={services} />
            <Counts />
          </>
        )}
      </header>
      {rows.length > 0 && <Head services={services} />}
      {serviceList.value?.length === 0 && <Welcome />}
      <VirtualRows
        label="Services"
        items={rows}
        rowHeight={ROW_HEIGHT}
        keyOf={({ service }) => service.name}
        row={(row) => <Row {...row} shown={names} />}
      />
    </section>
  );
}
