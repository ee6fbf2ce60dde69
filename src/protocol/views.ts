// What the owners tell the front: it answers reads of resources from these rows, without asking anybody.
import type { EventRecord } from './events.ts';
import type { ServiceSpec, ServiceState } from './service.ts';
import type { StatsRow } from './stats.ts';

/** A spec as clients may see it: no values of env. */
export interface SpecRow extends Omit<ServiceSpec, 'env'> {
  revision: number;
  envKeys: string[];
  /** HMAC over the whole spec with a key of the state directory. */
  specHash: string;
}

export interface ViewSnapshot {
  specs: SpecRow[];
  /** Of those whose actors have not begun. */
  states: ServiceState[];
}

export interface ViewsProtocol {
  /**
   * All services there are, at boot: the rest is forgotten. `text` is an Everything as JSON: at a start no code is hot, and
   * reading hundreds of rows of msgpack takes JavaScript that is not ten times as long.
   */
  snapshot(message: { text: string }): null;
  /** Specs that were registered or changed. */
  specs(message: { rows: SpecRow[] }): null;
  removed(message: { name: string }): null;
  states(message: { rows: ServiceState[] }): null;
  stats(message: { rows: StatsRow[] }): null;
  events(message: { events: EventRecord[] }): null;
  /** The log of `name` grew to the logical offset `end`: followers may read on. */
  grew(message: { name: string; end: number }): null;
}
