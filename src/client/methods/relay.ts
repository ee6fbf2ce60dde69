// The method for the relay: docs/reference.md "Relay".
import { relay } from '../../api/relay.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';

/** The methods of the cloud API at `endpoint`. */
export const relayMethods = (endpoint: Endpoint) => ({
  /** A ticket for a connection to the relay. */
  admitToRelay: ({ signal }: CallOptions = {}) => call(endpoint, relay.admit, { signal }),
});
