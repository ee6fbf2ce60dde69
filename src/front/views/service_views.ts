// The source of the front's answers to reads of services: a row per service with the bytes of its JSON. A row
// has three sources and changes often, so its JSON is composed at its first use and kept until a part
// changes.

import type { AgentStanding } from '../../api/agents_shapes.ts';
import type { AgentStatus } from '../../protocol/agent_state.ts';
import { withDependencies } from '../../protocol/dependency_order.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import type { ScheduleRow } from '../../protocol/schedules.ts';
import type { ServiceState } from '../../protocol/service.ts';
import { isHookOf } from '../../protocol/stacks.ts';
import type { StatsRow } from '../../protocol/stats.ts';
import type { SpecRow } from '../../protocol/views.ts';
import {
  agentDetail,
  agentItem,
  agentStanding,
  resolutionItem,
  type ServiceParts,
  serviceDetail,
  serviceItem,
} from './service_json.ts';

export interface StackUsage {
  services: number;
  running: number;
  rssMB: number;
}
const NOTHING_USED: StackUsage = { services: 0, running: 0, rssMB: 0 };

interface ServiceRow {
  /** null: the state arrived before the spec, which another actor sends. */
  spec: SpecRow | null;
  state: ServiceState | null;
  stats: StatsRow | null;
  schedule: ScheduleRow | null;
  agent: AgentStatus | null;
  /** The processor time measured so far, in seconds. */
  cpuSeconds: number;
  item: Buffer | null;
  detail: Buffer | null;
  agentDetail: Buffer | null;
  resolution: Buffer | null;
}
type ServiceRowWithSpec = ServiceRow & { spec: SpecRow };

const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']}');

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** `{"<key>":[<items>]}` */
function jsonList(key: string, items: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`{"${key}":[`)];
  for (const [index, item] of items.entries()) {
    if (index > 0) parts.push(COMMA);
    parts.push(item);
  }
  parts.push(CLOSE);
  return Buffer.concat(parts);
}

/** Selects the services that the caller may see. */
type SpecFilter = (spec: SpecRow) => boolean;

const listAgents = (rows: readonly ServiceRowWithSpec[]): Buffer =>
  json({ agents: rows.flatMap((row) => (row.spec.agent ? [agentItem(row, row.spec.agent)] : [])) });

/** The latest services from their owners. Only the actor `views` updates it. */
export class ServiceViews {
  private readonly rows = new Map<string, ServiceRow>();
  /** The names of all rows in order; null: a row was added or removed since. */
  private names: string[] | null = null;
  private serviceList: Buffer | null = null;
  private groupList: Buffer | null = null;
  private agentList: Buffer | null = null;
  private gatewayPort: number | null = null;

  /** Sets the port of the gateway, which the URLs of services name; null: there is none. */
  setGatewayPort(port: number | null): void {
    this.gatewayPort = port;
    for (const name of this.rows.keys()) this.invalidate(name);
    this.invalidateLists();
  }

  /** Drops every service that is not in `names`. */
  retainOnly(names: ReadonlySet<string>): void {
    for (const name of this.rows.keys()) if (!names.has(name)) this.remove(name);
  }

  /** Takes new and changed specs. */
  setSpecs(specs: readonly SpecRow[]): void {
    for (const spec of specs) this.invalidate(spec.name).spec = spec;
    this.invalidateLists();
  }

  remove(name: string): void {
    this.rows.delete(name);
    this.names = null;
    this.invalidateLists();
  }

  /** Takes new and changed states. */
  setStates(states: readonly ServiceState[]): void {
    for (const state of states) this.invalidate(state.name).state = state;
    this.invalidateLists();
  }

  /** Updates the states of agents. */
  setAgents(rows: readonly AgentStatus[]): void {
    for (const row of rows) this.invalidate(row.name).agent = row;
    this.agentList = null;
  }

  /** Takes new and changed schedules. */
  setSchedules(rows: readonly ScheduleRow[]): void {
    for (const row of rows) this.invalidate(row.name).schedule = row;
    this.serviceList = null;
  }

  /** Adds measurements; those of unknown services are ignored. */
  setStats(stats: readonly StatsRow[]): void {
    for (const measured of stats) {
      if (!this.rows.has(measured.name)) continue;
      const row = this.invalidate(measured.name);
      row.stats = measured;
      row.cpuSeconds += measured.usedSeconds;
    }
    this.serviceList = null;
  }

  spec(name: string): SpecRow | null {
    return this.rows.get(name)?.spec ?? null;
  }

  state(name: string): ServiceState | null {
    return this.rows.get(name)?.state ?? null;
  }

  /** Every registered service with its parts, by name. */
  all(): readonly (ServiceParts & { readonly cpuSeconds: number })[] {
    return this.rowsWithSpec();
  }

  /** All specs, by name. */
  specs(): SpecRow[] {
    return this.rowsWithSpec().map(({ spec }) => spec);
  }

  /** The specs of a service and of all that it depends on. */
  withDependencies(name: string): SpecRow[] {
    const specs = this.specs();
    const wanted = withDependencies(specs, [name]);
    return specs.filter((spec) => wanted.has(spec.name));
  }

  /** The specs of a group's members, by name. */
  members(group: string): SpecRow[] {
    return this.rowsWithSpec()
      .map(({ spec }) => spec)
      .filter((spec) => groupOf(spec) === group);
  }

  /** The resource usage of each stack's services. */
  stackUsage(): Map<string, StackUsage> {
    const found = new Map<string, StackUsage>();
    for (const { spec, state, stats } of this.rowsWithSpec()) {
      if (!spec.stack || isHookOf(spec.stack, spec.name)) continue;
      const { services, running, rssMB } = found.get(spec.stack) ?? NOTHING_USED;
      found.set(spec.stack, {
        services: services + 1,
        running: running + (state?.status === 'running' ? 1 : 0),
        rssMB:
          rssMB + (stats && stats.run === state?.process?.run ? stats.rssMB : (state?.process?.rssMB ?? 0)),
      });
    }
    return found;
  }

  /** The specs of a stack's services, by name. */
  stackMembers(stack: string): SpecRow[] {
    return this.rowsWithSpec()
      .map(({ spec }) => spec)
      .filter((spec) => spec.stack === stack);
  }

  /** One service in its list form; null for an unknown name. */
  item(name: string): Buffer | null {
    const row = this.rows.get(name);
    return row && hasSpec(row) ? this.itemOf(row) : null;
  }

  /** One service in its full form; null for an unknown name. */
  detail(name: string): Buffer | null {
    const row = this.rows.get(name);
    if (!row || !hasSpec(row)) return null;
    row.detail ??= json(serviceDetail(row, this.gatewayPort));
    return row.detail;
  }

  /** The state of an agent; null for an unknown name or a service that is not an agent. */
  standing(name: string): AgentStanding | null {
    const row = this.rows.get(name);
    return row && hasSpec(row) && row.spec.agent ? agentStanding(row) : null;
  }

  /** One agent in its full form; null for an unknown name or a service that is not an agent. */
  agent(name: string): Buffer | null {
    const row = this.rows.get(name);
    if (!row || !hasSpec(row) || !row.spec.agent) return null;
    row.agentDetail ??= json(agentDetail(row, row.spec.agent, this.gatewayPort));
    return row.agentDetail;
  }

  /** The address of a service; null for an unknown name. */
  resolve(name: string): Buffer | null {
    const row = this.rows.get(name);
    if (!row || !hasSpec(row)) return null;
    row.resolution ??= json(resolutionItem(row));
    return row.resolution;
  }

  /** The list of services; `isShown` null: all of them. The same applies to the lists below. */
  services(isShown: SpecFilter | null = null): Buffer {
    if (isShown) return this.listServices(this.rowsOf(isShown));
    this.serviceList ??= this.listServices(this.rowsWithSpec());
    return this.serviceList;
  }

  groups(isShown: SpecFilter | null = null): Buffer {
    if (isShown) return json({ groups: groupsOf(this.rowsOf(isShown)) });
    this.groupList ??= json({ groups: groupsOf(this.rowsWithSpec()) });
    return this.groupList;
  }

  agents(isShown: SpecFilter | null = null): Buffer {
    if (isShown) return listAgents(this.rowsOf(isShown));
    this.agentList ??= listAgents(this.rowsWithSpec());
    return this.agentList;
  }

  /** Every registered service with its state, by name. */
  rowsWithSpec(): ServiceRowWithSpec[] {
    this.names ??= [...this.rows.keys()].sort();
    return this.names.flatMap((name) => {
      const row = this.rows.get(name);
      return row && hasSpec(row) ? [row] : [];
    });
  }

  private rowsOf(isShown: SpecFilter): ServiceRowWithSpec[] {
    return this.rowsWithSpec().filter(({ spec }) => isShown(spec));
  }

  private listServices(rows: readonly ServiceRowWithSpec[]): Buffer {
    return jsonList(
      'services',
      rows.map((row) => this.itemOf(row)),
    );
  }

  private itemOf(row: ServiceRowWithSpec): Buffer {
    row.item ??= json(serviceItem(row, this.gatewayPort));
    return row.item;
  }

  /** The row of `name`, without its JSON, because it is about to change. */
  private invalidate(name: string): ServiceRow {
    let row = this.rows.get(name);
    if (!row) {
      row = {
        spec: null,
        state: null,
        stats: null,
        schedule: null,
        agent: null,
        cpuSeconds: 0,
        item: null,
        detail: null,
        agentDetail: null,
        resolution: null,
      };
      this.rows.set(name, row);
      this.names = null;
    }
    row.item = null;
    row.detail = null;
    row.agentDetail = null;
    row.resolution = null;
    return row;
  }

  private invalidateLists(): void {
    this.serviceList = null;
    this.groupList = null;
    this.agentList = null;
  }
}

const groupOf = (spec: SpecRow): string | null => (spec.agent ? AGENTS_GROUP : spec.group);

const hasSpec = (row: ServiceRow): row is ServiceRowWithSpec => row.spec !== null;

/** A group has no record of its own and exists while it has members: docs/reference.md "Groups". */
function groupsOf(
  rows: readonly ServiceRowWithSpec[],
): { name: string; services: number; running: number }[] {
  const groups = new Map<string, { name: string; services: number; running: number }>();
  for (const { spec, state } of rows) {
    const name = groupOf(spec);
    if (name === null) continue;
    const group = groups.get(name) ?? { name, services: 0, running: 0 };
    group.services += 1;
    if (state?.status === 'running') group.running += 1;
    groups.set(name, group);
  }
  return [...groups.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}
