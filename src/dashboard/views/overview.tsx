// All services in one table: what runs, what it uses, where it answers.
import { useMemo } from 'preact/hooks';
import type { Service } from '../../client/browser.ts';
import { cpuText, memoryText, spanText } from '../../presentation/format.ts';
import { listedName } from '../../presentation/sections.ts';
import { Button } from '../frame/button.tsx';
import { crashText, StateLabel } from '../frame/status_mark.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { actOn, type ServiceAction, underWay } from '../state/actions.ts';
import { usageOf } from '../state/daemon.ts';
import { linkTo, setFilter, shownPlace } from '../state/place.ts';
import { sections, statusCounts } from '../state/sections.ts';
import { tenSeconds } from '../state/ticker.ts';

const ROW_HEIGHT = 36;
const AT_REST: ReadonlySet<string> = new Set(['stopped', 'crashed', 'completed', 'sleeping']);
const ORDER = ['crashed', 'starting', 'running', 'sleeping', 'completed', 'stopped', 'stopping'];

/** Whether a service can be started: nothing of it runs. */
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
      onPress={() => void actOn(action, name)}
    />
  );
  return (
    <span class="cell-actions">
      {one('start', !isAtRest(service))}
      {one('stop', false)}
      {one('restart', false)}
    </span>
  );
}

/** A service's address as a link, if a browser can do something with it. */
export function AddressLink({ service }: { service: Service }) {
  const address = service.gatewayUrl ?? service.url;
  if (address === null) return <span class="soft">no port</span>;
  return (
    <a class="address" href={address} target="_blank" rel="noopener noreferrer">
      {address.replace(/^http:\/\//, '').replace(/\/$/, '')}
    </a>
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

function Row({ service, title }: { service: Service; title: string }) {
  const { name, status, startedAt, restarts } = service;
  const uptime = startedAt === undefined ? '' : spanText(tenSeconds.value - Date.parse(startedAt));
  return (
    <div class="table-row" data-name={name}>
      <StateLabel state={status} detail={crashText(service)} />
      <a class="cell-name" href={linkTo('services', name, shownPlace.value.query)} title={name}>
        {listedName(service)}
      </a>
      <span class="soft cell-section">{title}</span>
      <span class="number soft cell-uptime">{uptime}</span>
      <span class="number soft cell-restarts">{restarts > 0 ? restarts : ''}</span>
      <UsageCells name={name} />
      <AddressLink service={service} />
      <RowActions service={service} />
    </div>
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

/** The table of the services that the search wants. */
export function Overview() {
  const shown = sections.value;
  const rows = useMemo(() => {
    const all = shown.flatMap(({ title, services }) => services.map((service) => ({ title, service })));
    const urgency = ({ service }: { service: Service }): number => (service.status === 'crashed' ? 0 : 1);
    return all.sort((one, other) => urgency(one) - urgency(other));
  }, [shown]);
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Services</h1>
        <Counts />
      </header>
      <div class="table-row table-head" aria-hidden="true">
        {['State', 'Name', 'Stack or group', 'Uptime', 'Restarts', 'CPU', 'Memory', 'Address', ''].map(
          (title, at) => (
            <span
              key={title}
              class={['', '', 'cell-section', 'cell-uptime', 'cell-restarts', 'cell-cpu', 'cell-memory'][at]}
            >
              {title}
            </span>
          ),
        )}
      </div>
      <VirtualRows
        label="Services"
        items={rows}
        rowHeight={ROW_HEIGHT}
        keyOf={({ service }) => service.name}
        row={({ service, title }) => <Row service={service} title={title} />}
      />
    </section>
  );
}
