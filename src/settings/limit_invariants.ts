// Relations between limits that the code relies on.

import { AGENT } from './agent_limits.ts';
import { CLOUD, TETHER } from './cloud_limits.ts';
import { EVENTS, HTTP, LOGS, READY_CHECK, SCHEDULE, SERVICE } from './limits.ts';

/** Relations that must hold; `test/readme.test.ts` checks each. */
export const INVARIANTS: readonly [why: string, holds: boolean][] = [
  [
    'the largest query may ask for the default wait',
    HTTP.maxQueryDurationMs >= SERVICE.defaultStartTimeoutMs,
  ],
  ['one line must fit in what a follower may buffer', LOGS.maxLineBytes * 4 <= EVENTS.maxUnsentBytes],
  ['a drawing stops before its thread is ended', AGENT.drawBudgetMs * 10 <= AGENT.drawTimeoutMs],
  ['so does a reading', AGENT.readBudgetMs * 4 <= AGENT.drawTimeoutMs],
  ['a kubeconfig is smaller than any body', HTTP.maxKubeconfigBytes <= HTTP.maxBodyBytes],
  [
    'an ask outlives the longest start and the stop after it',
    SERVICE.askDeadlineMs > 2 * HTTP.maxQueryDurationMs,
  ],
  ['a time of a schedule is looked for before it is late', SCHEDULE.lookMs < SCHEDULE.lateMs],
  ['an ask outlives the longest wait for a task', SERVICE.askDeadlineMs > SERVICE.taskWaitMs],
  ['a shutdown waits for what is killed', SERVICE.shutdown.remainingStopMs > SERVICE.killTimeoutMs],
  [
    'a dead watch is found before a good one ends',
    CLOUD.watch.silenceTimeoutMs < CLOUD.watch.timeoutS * 1_000,
  ],
  ['an API server may answer for as long as it is dialled', CLOUD.callTimeoutMs >= CLOUD.dialTimeoutMs],
  [
    'attempts at a change that get no answer end within its time limit',
    (1 + CLOUD.maxUnansweredRetries) * (CLOUD.callTimeoutMs + CLOUD.changeTimeoutMs) <= CLOUD.scaleTimeoutMs,
  ],
  [
    'a waiting client is not given up before a pod is dialled',
    TETHER.podWaitTimeoutMs > TETHER.dialTimeoutMs,
  ],
  ['a silent connection is asked before it counts as dead', 2 * TETHER.pingIntervalMs < TETHER.deadPeerMs],
  ['a pod is new for less time than its clients wait', TETHER.freshPodMs < TETHER.podWaitTimeoutMs],
  [
    'a stale list of pods is renewed before a client is given up',
    TETHER.retryWindowMs >= 2 * TETHER.minRelistIntervalMs,
  ],
  [
    'traffic is reported before any workload is put to sleep after a restart',
    TETHER.trafficReportIntervalMs < CLOUD.sweeperStartDelayMs,
  ],
  [
    'the ready-check slows down only after its fast phase',
    READY_CHECK.fastPhaseMs * READY_CHECK.elapsedFraction >= READY_CHECK.fastIntervalMs,
  ],
];
