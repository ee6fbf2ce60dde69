// The messages from the owners of services to the front, which answers all reads of services from these rows.
import type { AgentStatus } from './agent_state.ts';
import type { EventRecord } from './events.ts';
import type { ScheduleRow } from './schedules.ts';
import type { ServiceSpec, ServiceState } from './service.ts';
import type { StatsRow } from './stats.ts';

/** A spec as clients see it: without the values of its environment. */
export interface SpecRow extends Omit<ServiceSpec, 'env'> {
  revision: number;
  envKeys: string[];
  /** HMAC over the whole spec with a key from the state directory. */
  specHash: string;
}

export interface ViewSnapshot {
  specs: SpecRow[];
  /** Only for services whose actors have not started. */
  states: ServiceState[];
}

export interface ViewsProtocol {
  /**
   * All services, at start-up; any other is dropped. `text` is a ViewSnapshot as JSON: at a start no code is
   * compiled yet, and decoding hundreds of rows of msgpack takes ten times as long as JSON.parse.
   */
  snapshot(message: { text: string }): null;
  /** New and changed specs. */
  specs(message: { rows: SpecRow[] }): null;
  removed(message: { name: string }): null;
  states(message: { rows: ServiceState[] }): null;
  /** What agents are doing. */
  agents(message: { rows: AgentStatus[] }): null;
  stats(message: { rows: StatsRow[] }): null;
  schedules(message: { rows: ScheduleRow[] }): null;
  events(message: { events: EventRecord[] }): null;
  /**
   * The log of `name` has grown, so its followers may continue reading. The service forwards this from the
   * host. A shorter path would save nothing: the link to the host ends on the services thread, and an agent's
   * terminal needs the same message.
   */
  grew(message: { name: string }): null;
}
