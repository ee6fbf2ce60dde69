// The methods for services: docs/reference.md "Endpoints".

import { services } from '../../api/services.ts';
import type { Registration, StopResult, StopUnderWay } from '../../api/services_shapes.ts';
import type { UsageRange } from '../../protocol/stats.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';
import type { StreamOptions } from '../event_stream.ts';
import { followGrowth, followLog, type LogFollowOptions, type LogOptions, logsQuery } from './logs.ts';

export interface StartOptions extends CallOptions {
  /** Milliseconds; absent: the service's own. */
  timeout?: number | undefined;
  /** false: answer as soon as the process exists. */
  wait?: boolean | undefined;
  /** true: never put it to sleep when idle, until it is stopped or put to sleep. */
  awake?: boolean | undefined;
  /** true: skip a task that has completed with the same content, and join one under way. */
  ifChanged?: boolean | undefined;
  /** true: join a start under way, and leave a running service alone. */
  join?: boolean | undefined;
}

export interface ResolveOptions extends Pick<StartOptions, 'timeout' | 'signal'> {
  /** true: wakes the service first. */
  wake?: boolean | undefined;
}

/** Of a call that lasts as long as a start or a stop. */
export interface WaitOptions extends CallOptions {
  /** false: answer with the present state if it has not ended at once. */
  wait?: boolean | undefined;
}

export interface StopOptions extends WaitOptions {
  /** Milliseconds; absent: the service's own. */
  grace?: number | undefined;
}

export interface StatsHistoryOptions extends CallOptions {
  /** `hour`: a point for every 10 s; `day`: one for every minute. */
  range?: UsageRange | undefined;
}

/** Without `wait: false` the answer is always that of a stop that has ended. */
export interface StopMethod {
  (name: string, options: StopOptions & { wait: false }): Promise<StopResult | StopUnderWay>;
  (name: string, options?: StopOptions): Promise<StopResult>;
}

/** The methods of the daemon at `endpoint`. */
export const serviceMethods = (endpoint: Endpoint) => ({
  services: async ({ signal }: CallOptions = {}) =>
    (await call(endpoint, services.list, { signal })).services,
  service: (name: string, { signal }: CallOptions = {}) => call(endpoint, services.read, { name, signal }),
  /** Creates or replaces a service; a running process is left alone. */
  register: (spec: Registration, { signal }: CallOptions = {}) =>
    call(endpoint, services.register, { body: spec, signal }),
  /** Resolves when the ready-check has passed, or the task has completed. */
  start: (name: string, { timeout, wait, awake, ifChanged, join, signal }: StartOptions = {}) =>
    call(endpoint, services.start, { name, query: { timeout, wait, awake, ifChanged, join }, signal }),
  /** Resolves when the whole process tree is gone. */
  stop: ((name: string, { grace, wait, signal }: StopOptions = {}) =>
    call(endpoint, services.stop, { name, query: { grace, wait }, signal })) as StopMethod,
  restart: (
    name: string,
    { timeout, grace, wait, signal }: StopOptions & Pick<StartOptions, 'timeout'> = {},
  ) => call(endpoint, services.restart, { name, query: { timeout, grace, wait }, signal }),
  /** Ends the process. The next connection to the service's port wakes it. */
  sleep: (name: string, { wait, signal }: WaitOptions = {}) =>
    call(endpoint, services.sleep, { name, query: { wait }, signal }),
  /** Starts it and everything it depends on; running services are left alone. */
  wake: (name: string, { timeout, wait, signal }: Pick<StartOptions, 'timeout'> & WaitOptions = {}) =>
    call(endpoint, services.wake, { name, query: { timeout, wait }, signal }),
  /** Sends a signal, such as SIGHUP, to the process group. */
  signal: (name: string, signalName: string, { signal }: CallOptions = {}) =>
    call(endpoint, services.signal, { name, body: { signal: signalName }, signal }),
  remove: (name: string, { wait, signal }: WaitOptions = {}) =>
    call(endpoint, services.remove, { name, query: { wait }, signal }),
  explain: (name: string, { signal }: CallOptions = {}) => call(endpoint, services.explain, { name, signal }),
  /** Its usage in the last hour (default) or day. */
  statsHistory: (name: string, { range, signal }: StatsHistoryOptions = {}) =>
    call(endpoint, services.statsHistory, { name, query: { range }, signal }),
  /** The URL of a service, running or not. */
  resolve: (name: string, { wake, timeout, signal }: ResolveOptions = {}) =>
    call(endpoint, services.resolve, { name, query: { wake, timeout }, signal }),
  logs: (name: string, options: LogOptions = {}) =>
    call(endpoint, services.logs, { name, query: logsQuery(options), signal: options.signal }),
  /** The last `lines`, then every new one. */
  followLogs: (name: string, options: LogFollowOptions = {}) =>
    followLog(endpoint, services.followLogs, name, options),
  /** Yields each time the service has printed something, whether or not it ends a line. */
  followLogGrowth: (name: string, options: StreamOptions = {}) =>
    followGrowth(endpoint, services.followLogs, name, options),
});
