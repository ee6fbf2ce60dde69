// The methods for the daemon itself: docs/reference.md "System endpoints".
import { system } from '../../api/system.ts';
import { type CallOptions, call, type Endpoint, sendRequest } from '../api_call.ts';

/** The methods of the daemon at `endpoint`. */
export const systemMethods = (endpoint: Endpoint) => ({
  version: ({ signal }: CallOptions = {}) => call(endpoint, system.version, { signal }),
  /** Resolves with true when the daemon serves requests, and false while it starts or shuts down. */
  ready: async ({ signal }: CallOptions = {}): Promise<boolean> =>
    (await sendRequest(endpoint, system.readyz, { signal })).status === 200,
  /** What the daemon is doing. */
  system: ({ signal }: CallOptions = {}) => call(endpoint, system.system, { signal }),
  /** Sends a notice to every target of the configuration. */
  testNotices: async ({ signal }: CallOptions = {}) =>
    (await call(endpoint, system.testNotices, { signal })).results,
  /** The OpenAPI 3.1 document of the whole API. */
  openapi: ({ signal }: CallOptions = {}): Promise<object> => call(endpoint, system.openapi, { signal }),
});
