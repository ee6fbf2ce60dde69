// The records of the API in JSON, inferred from the shapes of its bodies and answers.
// docs/reference.md "A service in JSON".
import type { z } from '../adapters/zod.ts';
import type { EVENT_DATA, EVENT_DETAIL } from '../api/events_shapes.ts';

export type { LoginSettings } from '../api/access_shapes.ts';
export type {
  Agent,
  AgentDetail,
  AgentExplanation,
  AgentRemoved,
  AgentShare,
  AgentStanding,
  Prompted,
  PromptRequest,
  Shared,
  SpinupRequest,
  SpunUp,
} from '../api/agents_shapes.ts';
export type { CloudEvent, CloudOperation } from '../api/cloud_events_shapes.ts';
export type { Cluster, ClusterDetail, ClusterUpdate, NewCluster } from '../api/clusters_shapes.ts';
export type { Group, GroupStarted, GroupStopped } from '../api/groups_shapes.ts';
export type { LogEntry, LogPage, LogRunEvent, LogTextLine } from '../api/logs_shapes.ts';
export type { Policy, PolicyBody, PolicyPreview } from '../api/policies_shapes.ts';
export type { ApiToken, Grant, NewGrant, NewToken } from '../api/principals_shapes.ts';
export type { Savings } from '../api/savings_shapes.ts';
export type {
  Explanation,
  Logs,
  Registration,
  Removed,
  Resolution,
  Service,
  ServiceDetail,
  SignalResult,
  StartResult,
  StatsHistory,
  StopResult,
} from '../api/services_shapes.ts';
export type { NewStack, Stack } from '../api/stacks_shapes.ts';
export type { Version } from '../api/system_shapes.ts';
export type { NewTether, Tether } from '../api/tethers_shapes.ts';
export type { AutoSleepSettings, Workload, WorkloadDetail } from '../api/workloads_shapes.ts';
export type { AgentType } from '../protocol/agent_types.ts';
export type { ClusterCapabilities } from '../protocol/clusters.ts';
export type { RestartPolicy, ServiceStatus } from '../protocol/service.ts';

/** The two additional fields of every event's data with `?detail=true`. */
export type EventDetail = z.infer<typeof EVENT_DETAIL>;

/** The data of each type of event: docs/reference.md "Event types". */
export type EventData = { [T in keyof typeof EVENT_DATA]: z.infer<(typeof EVENT_DATA)[T]> } & {
  /** Events may be missing before this point: read the lists again. */
  'stream.reset': { oldest: number };
};

/** One frame of the event stream. `id` is null for `stream.reset`, which is not in the journal. */
export type DaemonEvent = {
  [T in keyof EventData]: { type: T; id: number | null; data: EventData[T] & EventDetail };
}[keyof EventData];

/** One row of the history. */
export type PastEvent = DaemonEvent & { id: number };
