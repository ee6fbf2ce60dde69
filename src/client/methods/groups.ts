// The methods for groups: docs/reference.md "Endpoints".
import { groups } from '../../api/groups.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';
import type { StartOptions, StopOptions } from './services.ts';

/** The methods of the daemon at `endpoint`. */
export const groupMethods = (endpoint: Endpoint) => ({
  groups: async ({ signal }: CallOptions = {}) => (await call(endpoint, groups.list, { signal })).groups,
  startGroup: (name: string, { timeout, signal }: Pick<StartOptions, 'timeout' | 'signal'> = {}) =>
    call(endpoint, groups.start, { name, query: { timeout }, signal }),
  sleepGroup: (name: string, { signal }: CallOptions = {}) => call(endpoint, groups.sleep, { name, signal }),
  wakeGroup: (name: string, { timeout, signal }: StartOptions = {}) =>
    call(endpoint, groups.wake, { name, query: { timeout }, signal }),
  stopGroup: (name: string, { grace, signal }: StopOptions = {}) =>
    call(endpoint, groups.stop, { name, query: { grace }, signal }),
  restartGroup: (
    name: string,
    { timeout, grace, signal }: Pick<StartOptions, 'timeout' | 'signal'> & StopOptions = {},
  ) => call(endpoint, groups.restart, { name, query: { timeout, grace }, signal }),
});
