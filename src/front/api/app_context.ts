// The dependencies of the handlers.
import type { AgentStanding } from '../../api/agents_shapes.ts';
import type { Operation } from '../../api/operation.ts';
import type { EventRecord } from '../../protocol/events.ts';
import type { LogJobs } from '../../protocol/logs.ts';
import type { SystemReading } from '../../protocol/system.ts';
import type { Clock, Node } from '../../runtime/actor.ts';
import type { RequestCounts } from '../metrics/request_counts.ts';
import type { StartTimes } from '../metrics/start_times.ts';
import type { AgentConnections } from '../streams/agent_connections.ts';
import type { AgentWaits } from '../streams/agent_waits.ts';
import type { CloudEventStreams } from '../streams/cloud_event_streams.ts';
import type { EventHub } from '../streams/event_hub.ts';
import type { LogStreams } from '../streams/log_streams.ts';
import type { McpRelay } from '../streams/mcp_relay.ts';
import type { MergedLogs } from '../streams/merged_logs.ts';
import type { OpenStreams } from '../streams/open_streams.ts';
import type { TerminalSockets } from '../streams/terminal_sockets.ts';
import type { ServiceViews } from '../views/service_views.ts';
import type { AccessKeys } from './access_keys.ts';
import type { CloudGate } from './cloud_gate.ts';
import type { CommandOwners } from './command_owners.ts';
import type { RedirectPages } from './redirect_pages.ts';

/** The daemon's information about itself. Read at each request, so its owner may change it. */
export interface DaemonInfo {
  version: string;
  pid: number;
  /** Epoch milliseconds. */
  startedAt: number;
  /** The name of the HTTP server in use. */
  front: string;
  stateDir: string;
  /** null: off. */
  gatewayPort: number | null;
  agentDomain: string;
}

/** `starting`: the views are not filled yet; `closing`: changes are refused. */
export type DaemonPhase = 'starting' | 'ready' | 'closing';

/** Builds the API's document from the operations that are served. */
export type DocumentBuilder = (operations: readonly Operation[]) => Promise<Uint8Array>;

export interface AppContext {
  readonly clock: Clock;
  readonly views: ServiceViews;
  readonly cloud: CloudGate;
  readonly hub: EventHub<EventRecord>;
  readonly cloudEvents: CloudEventStreams;
  readonly logs: LogStreams;
  readonly mergedLogs: MergedLogs;
  readonly logJobs: LogJobs;
  readonly terminals: TerminalSockets;
  readonly agentWaits: AgentWaits<AgentStanding>;
  readonly mcp: McpRelay;
  readonly streams: OpenStreams;
  readonly agentConnections: AgentConnections;
  readonly commandOwners: CommandOwners;
  readonly keys: AccessKeys;
  /** null: there is no cloud part. */
  readonly cloudKeys: AccessKeys | null;
  readonly redirectPages: RedirectPages;
  readonly requests: RequestCounts;
  readonly starts: StartTimes;
  readonly daemonInfo: DaemonInfo;
  readonly phase: DaemonPhase;
  /** Why services cannot currently be shown or changed even in phase `ready`; or null. */
  unreadyReason(): string | null;
  /** What the daemon is doing. */
  readSystem(): Promise<SystemReading>;
  /** The API's document. */
  openapi(): Promise<Uint8Array>;
  readonly ref: Node['ref'];
}
