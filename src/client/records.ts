// The records of the API as they stand in JSON: docs/reference.md "A service in JSON" and the like. What is
// the very same inside the daemon is that type.
import type {
  AutoSleepSettings,
  ClusterCapabilities,
  WorkloadKind,
  WorkloadState,
} from '../protocol/cloud.ts';
import type {
  AgentType,
  ServiceExplanation as Facts,
  RestartPolicy,
  ServiceStatus,
  StartResult,
  StopResult,
} from '../protocol/service.ts';

export type {
  AgentType,
  AutoSleepSettings,
  ClusterCapabilities,
  RestartPolicy,
  ServiceStatus,
  StartResult,
  StopResult,
};

export interface Version {
  name: 'berth';
  version: string;
  pid: number;
  startedAt: string;
  front: string;
  stateDir: string;
  gatewayPort: number | null;
  apiLevel: number;
}

/** A service as it is listed. */
export interface Service {
  name: string;
  port: number;
  group: string | null;
  status: ServiceStatus;
  url: string;
  /** These four while there is a process. */
  pid?: number;
  /** RFC 3339. */
  startedAt?: string;
  /** Cores over the whole process tree: 1.0 is one core busy. */
  cpu?: number;
  rssMB?: number;
  /** These two after an end. */
  exitCode?: number | null;
  signal?: string | null;
  /** Nobody saw how it ended. */
  exitUnknown?: true;
  restarts: number;
}

/** A service as it is read by itself: with its spec, but for the values of `env`. */
export interface ServiceDetail extends Service {
  cmd: string;
  cwd: string;
  ready: string | null;
  dependsOn: string[];
  restart: RestartPolicy;
  autostart: boolean;
  stopSignal: string;
  /** Milliseconds, as is startTimeout. */
  stopGrace: number;
  startTimeout: number;
  labels: string[];
  /** Grows when the effective spec changes. */
  revision: number;
  /** The process runs an older revision. */
  stale: boolean;
  envKeys: string[];
  /** Differs when anything in the spec differs, values of `env` too. */
  specHash: string;
}

/** What `register` takes. An absent field takes its default, but `env`: absent keeps what is stored. */
export interface Registration {
  name: string;
  /** 0: a free one of `services.ports`. */
  port: number;
  cmd: string;
  cwd?: string | null;
  group?: string | null;
  ready?: string | null;
  env?: Record<string, string>;
  dependsOn?: string[];
  restart?: RestartPolicy;
  autostart?: boolean;
  stopSignal?: string;
  stopGrace?: number;
  startTimeout?: number;
  labels?: string[];
}

export interface Resolution {
  name: string;
  url: string;
  port: number;
  status: ServiceStatus;
}

export interface Removed {
  removed: true;
  name: string;
}

/** Why a service is as it is; times are RFC 3339. */
export interface Explanation extends Omit<Facts, 'lastCheck' | 'backoff' | 'exit'> {
  lastCheck: { url: string; at: string; status: number | null; error: string | null } | null;
  backoff: { attempt: number; delayMs: number; nextAt: string } | null;
  exit: { exitCode: number | null; signal: string | null; at: string } | null;
}

export interface Logs {
  name: string;
  port: number;
  lines: string[];
}

export interface Group {
  name: string;
  services: number;
  running: number;
}

export interface GroupStarted {
  name: string;
  services: StartResult[];
}

export interface GroupStopped {
  name: string;
  services: { name: string; status: ServiceStatus; exitCode: number | null }[];
}

export interface Agent {
  port: number;
  name: string;
  /** A process lives. */
  active: boolean;
  pid: number | null;
  hostname: string;
  agent_type: AgentType | null;
  group: 'Agents';
}

export interface SpinupRequest {
  name: string;
  /** One of `cmd` and `agent_type` is required. */
  cmd?: string;
  port?: number;
  agent_type?: AgentType;
  cwd?: string;
  env?: Record<string, string>;
  /** `$PORT` in it is the port of the agent. */
  ready?: string;
  cols?: number;
  rows?: number;
}

export interface SpunUp {
  port: number;
  name: string;
  active: boolean;
  hostname: string;
  pid: number;
  url: string;
  gatewayUrl: string | null;
  agent_type: AgentType | null;
}

export interface AgentRemoved {
  removed: true;
  name: string;
  port: number;
}

export interface Cluster {
  id: string;
  name: string;
  provider: string;
  in_cluster: boolean;
  created_at: string;
}

export interface ClusterDetail extends Cluster {
  version: string | null;
  reachable: boolean | null;
  last_sync_at: string | null;
  capabilities: ClusterCapabilities | null;
}

export interface NewCluster {
  name: string;
  provider?: string;
  /** Raw or base64 text. */
  kubeconfig?: string;
  in_cluster?: boolean;
}

export interface Workload {
  id: string;
  name: string;
  namespace: string;
  kind: WorkloadKind;
  replicas: number;
  /** null until a sleep saved one. */
  desired_replicas: number | null;
  auto_sleep_enabled: boolean;
  idle_timeout_minutes: number;
  last_activity_at: string | null;
  cluster_id: string;
  ready_replicas: number;
  state: WorkloadState;
  sleep_reason: string | null;
}

export interface Tether {
  tether_id: string;
  workload_id: string;
  container_port: number;
  label: string | null;
  /** null while it is idle. */
  local_port: number | null;
  state: 'idle' | 'active';
  /** Open now. */
  connections: number;
  /** From clients to pods, and back, since the daemon began. */
  bytes_in: number;
  bytes_out: number;
  /** Why the last connection that could not be carried was reset. */
  last_error: string | null;
}

export interface NewTether {
  container_port: number;
  label?: string;
  /** Whether a connection may wake the workload; default true. */
  wake?: boolean;
}

/** With `?detail=true` every event's data has these two besides. */
export interface EventDetail {
  at?: string;
  run?: string | null;
}

/** The data of each type of event: docs/reference.md "Event types". */
export interface EventData {
  'service.registered': { name: string; port: number; group: string | null };
  'service.started': { name: string; pid: number; url: string };
  'service.stopped': { name: string; exitCode: number | null; signal?: string | null };
  'service.crashed': { name: string; exitCode: number | null; signal: string | null };
  'service.stats': { name: string; cpu: number; rssMB: number };
  'service.removed': { name: string };
  'port.conflict': { port: number; claimedBy: string; holder: string };
  /** Events may be missing before this point: read the lists again. */
  'stream.reset': { oldest: number };
}

/** One frame of the event stream. `id` is null for `stream.reset`, which is no event of the journal. */
export type DaemonEvent = {
  [T in keyof EventData]: { type: T; id: number | null; data: EventData[T] & EventDetail };
}[keyof EventData];

/** One row of the history. */
export type PastEvent = DaemonEvent & { id: number };
