import type { PortProtocol } from './port_protocol.ts';

/** A run with its assigned port. */
export interface PortUse {
  /** The name of the service. */
  owner: string;
  run: string;
  /** The first process of the run. */
  pid: number;
  port: number;
}

/** The port that a service has registered; null: none. */
export interface PortClaim {
  /** The name of the service. */
  name: string;
  port: number | null;
  protocol: PortProtocol;
}

/** The owner of the port of a process behind the door of the service `name`. No service has such a name. */
export const innerOwner = (name: string): string => `${name}/inner`;

/** Tracks which service claims which port, and finds listeners. */
export interface PortsProtocol {
  /**
   * Records that the service `owner` has registered `port` (null: none), on which it speaks `protocol`.
   * Replies with the other owners of that port.
   */
  claim(message: { owner: string; port: number | null; protocol: PortProtocol }): { others: string[] };
  release(message: { owner: string }): null;
  /**
   * What the services whose names begin with `prefix` have registered, by name, as the JSON of a PortClaim[].
   * A group starts hundreds at once, and each asks: copying a text takes far less time than packing rows.
   */
  claims(message: { prefix: string }): { json: string };
  /**
   * Gives `owner` the lowest port of the range that is neither claimed nor in use, and claims it at once, so
   * two callers never get the same one. `keep`: preferred if it is free. Fails port_in_use when none is left.
   */
  lease(message: { owner: string; from: number; to: number; keep: number | null }): { port: number };
  /**
   * The listener on `port` on any loopback or wildcard address; null when there is none. `holder` is in the
   * words of the `port.conflict` event: a service's name, `pid 1234 (node)`, `user NAME`, or `unknown`.
   */
  listener(message: { port: number }): { listener: { pid: number | null; holder: string } | null };
  /** Who listens on the port without belonging to the run, in the same words; null if nobody does. */
  foreignHolder(message: PortUse): { holder: string | null };
  /** From now on, a program of another user on the port causes an event `port.conflict`, once per run. */
  watch(message: PortUse): null;
  /** The run has ended. Harmless for a run that is not watched. */
  unwatch(message: { run: string }): null;
}
