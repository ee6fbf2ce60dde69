// The job threads that read logs. They start with the first request.
// docs/reference.md "Logs of many services".
import type { LogJobs } from '../protocol/logs.ts';
import type { Node } from '../runtime/actor.ts';
import { LOGS } from '../settings/limits.ts';
import { createJobPool } from './job_pool.ts';

/** Decoded blocks live for a millisecond, and with more memory for them V8 would only hold it longer. */
const YOUNG_MB = 8;

/** Creates the pools, which cost nothing before the first job and end with `node`. */
export function createLogJobs(node: Node): LogJobs {
  const search = createJobPool({ deadlineMs: LOGS.jobDeadlineMs, youngMB: YOUNG_MB });
  node.scope.defer(() => search.close());
  // Separate, so that a search never delays followers.
  const follow = createJobPool({
    deadlineMs: LOGS.jobDeadlineMs,
    threads: 1,
    queue: LOGS.maxFollowJobs,
    youngMB: YOUNG_MB,
  });
  node.scope.defer(() => follow.close());
  return {
    search: (task) => search.run('searchLogs', task),
    start: (task) => follow.run('startMergedLogs', task),
    read: (task) => follow.run('readMergedLogs', task),
  };
}
