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

export interface ViewsProtocol {
  /** Specs that were registered or changed. `all`: these are all there are; forget the rest (sent at boot). */
  specs(message: { rows: SpecRow[]; all: boolean }): null;
  removed(message: { name: string }): null;
  states(message: { rows: ServiceState[] }): null;
  stats(message: { rows: StatsRow[] }): null;
  events(message: { events: EventRecord[] }): null;
  /** The log of `name` grew to the logical offset `end`: followers may read on. */
  grew(message: { name: string; end: number }): null;
}
