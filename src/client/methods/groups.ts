// The methods for groups: docs/reference.md "Endpoints".
import { groups } from '../../api/groups.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';
import type { StartOptions, StopOptions, WaitOptions } from './services.ts';

type GroupStartOptions = Pick<StartOptions, 'timeout'> & WaitOptions;

/** The methods of the daemon at `endpoint`. */
export const groupMethods = (endpoint: Endpoint) => ({
  groups: async ({ signal }: CallOptions = {}) => (await call(endpoint, groups.list, { signal })).groups,
  startGroup: (name: string, { timeout, wait, signal }: GroupStartOptions = {}) =>
    call(endpoint, groups.start, { name, query: { timeout, wait }, signal }),
  sleepGroup: (name: string, { wait, signal }: WaitOptions = {}) =>
    call(endpoint, groups.sleep, { name, query: { wait }, signal }),
  wakeGroup: (name: string, { timeout, wait, signal }: GroupStartOptions = {}) =>
    call(endpoint, groups.wake, { name, query: { timeout, wait }, signal }),
  stopGroup: (name: string, { grace, wait, signal }: StopOptions = {}) =>
    call(endpoint, groups.stop, { name, query: { grace, wait }, signal }),
  restartGroup: (name: string, { timeout, grace, wait, signal }: GroupStartOptions & StopOptions = {}) =>
    call(endpoint, groups.restart, { name, query: { timeout, grace, wait }, signal }),
});
