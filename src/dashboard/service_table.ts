// The table of services, with one body per group. A row keeps its element while it is shown, so the focus
// stays.
import type { EventData, Service } from '../client/browser.ts';
import { createTextElement } from './dom.ts';
import { exitText } from './event_row.ts';

/** What a button of a row does. */
export type Action = 'start' | 'stop' | 'restart';
type RunAction = (action: Action, name: string) => Promise<void>;

const COLUMNS = 6;
const AT_REST: ReadonlySet<string> = new Set(['stopped', 'crashed', 'completed', 'sleeping']);

function button(action: Action, name: string, act: RunAction): HTMLButtonElement {
  const created = createTextElement('button', action);
  created.type = 'button';
  created.ariaLabel = `${action} ${name}`;
  created.addEventListener('click', () => {
    if (created.ariaDisabled !== 'true') void act(action, name);
  });
  return created;
}

class ServiceTableRow {
  readonly element = createTextElement('tr');
  private readonly status = createTextElement('td');
  private readonly cpu = createTextElement('td');
  private readonly memory = createTextElement('td');
  private readonly link = createTextElement('a');
  private readonly start: HTMLButtonElement;

  constructor(name: string, act: RunAction) {
    const log = createTextElement('a', name);
    log.href = `#log=${encodeURIComponent(name)}`;
    const title = createTextElement('th');
    title.scope = 'row';
    title.append(log);
    this.start = button('start', name, act);
    Object.assign(this.link, { target: '_blank', rel: 'noopener noreferrer' });
    const address = createTextElement('td');
    address.append(this.link);
    const actions = createTextElement('td');
    actions.append(this.start, button('stop', name, act), button('restart', name, act));
    this.element.append(title, this.status, this.cpu, this.memory, address, actions);
  }

  show({ status, url, cpu, rssMB, exitCode, signal }: Service, gatewayUrl: string | undefined): void {
    this.status.textContent =
      status === 'crashed' ? `crashed (${exitText(exitCode ?? null, signal)})` : status;
    this.status.dataset['status'] = status;
    this.measure(cpu, rssMB);
    const address = gatewayUrl ?? url;
    this.link.textContent = address;
    if (address === null) this.link.removeAttribute('href');
    else this.link.href = address;
    // `disabled` would lose the focus. Stop is always enabled, because it also cancels a pending restart.
    this.start.ariaDisabled = String(!AT_REST.has(status));
  }

  measure(cpu: number | undefined, rssMB: number | undefined): void {
    this.cpu.textContent = cpu === undefined ? '' : cpu.toFixed(2);
    this.memory.textContent = rssMB === undefined ? '' : rssMB.toFixed(1);
  }
}

/** Shows all services. */
export class ServiceTable {
  private readonly table: HTMLTableElement;
  private readonly empty: HTMLElement;
  private readonly act: RunAction;
  private rows = new Map<string, ServiceTableRow>();
  /** The names and their groups as shown, as JSON. */
  private layout = '';
  /** In lower case. Shown rows have it in their name or their group's name. */
  private filterText = '';

  constructor(table: HTMLTableElement, empty: HTMLElement, act: RunAction) {
    this.table = table;
    this.empty = empty;
    this.act = act;
  }

  /** Shows exactly these services. `gateways`: the URL of each agent by name. */
  show(services: readonly Service[], gateways: ReadonlyMap<string, string>): void {
    const rowOf = (name: string) => this.rows.get(name) ?? new ServiceTableRow(name, this.act);
    this.rows = new Map(services.map(({ name }) => [name, rowOf(name)]));
    for (const service of services) this.rows.get(service.name)?.show(service, gateways.get(service.name));
    this.empty.hidden = services.length > 0;
    const layout = JSON.stringify(services.map(({ name, group }) => [name, group]));
    if (layout !== this.layout) this.arrange(services);
    this.layout = layout;
  }

  /** Shows only rows that have `text` in their name or their group's name. */
  filter(text: string): void {
    this.filterText = text.trim().toLowerCase();
    for (const body of this.table.tBodies) {
      const [head, ...rows] = body.rows;
      const isWanted = (row: HTMLTableRowElement | undefined): boolean =>
        row?.cells[0]?.textContent?.toLowerCase().includes(this.filterText) ?? false;
      const isAll = isWanted(head);
      for (const row of rows) row.hidden = !isAll && !isWanted(row);
      body.hidden = rows.every((row) => row.hidden);
    }
  }

  /** Shows new measurements of one service. */
  measure({ name, cpu, rssMB }: EventData['service.stats']): void {
    this.rows.get(name)?.measure(cpu, rssMB);
  }

  private arrange(services: readonly Service[]): void {
    const groups = new Map<string, Element[]>();
    for (const { name, group } of services) {
      const row = this.rows.get(name);
      if (row) groups.set(group ?? '', [...(groups.get(group ?? '') ?? []), row.element]);
    }
    const focused = document.activeElement;
    for (const body of [...this.table.tBodies]) body.remove();
    for (const [group, rows] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const title = createTextElement('th', group === '' ? 'No group' : group);
      title.scope = 'rowgroup';
      title.colSpan = COLUMNS;
      const head = createTextElement('tr');
      head.append(title);
      const body = createTextElement('tbody');
      body.append(head, ...rows);
      this.table.append(body);
    }
    this.filter(this.filterText);
    // A moved element loses the focus.
    if (focused instanceof HTMLElement && this.table.contains(focused)) focused.focus();
  }
}
