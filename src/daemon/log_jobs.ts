// The job threads that read logs. They start with the first request.
// docs/reference.md "Logs of many services".
import type { LogJobs } from '../protocol/logs.ts';
import type { Node } from '../runtime/actor.ts';
import { LOGS } from '../settings/limits.ts';
import { createJobPool } from './job_pool.ts';

/** Creates the pools, which cost nothing before the first job and end with `node`. */
export function createLogJobs(node: Node): LogJobs {
  const search = createJobPool({ deadlineMs: LOGS.jobDeadlineMs });
  node.scope.defer(() => search.close());
  return { search: (task) => search.run('searchLogs', task) };
}
