// A service as defined in a project file.
import type { YamlPosition } from '../adapters/yaml.ts';
import type { LiveField, ReadyField } from '../protocol/checks.ts';
import type { Dependency } from '../protocol/dependency_order.ts';
import type { ScheduleSpec } from '../protocol/schedules.ts';
import type {
  RestartPolicy,
  RestartRule,
  RunLimits,
  ServiceSpec,
  SleepRule,
  WatchSpec,
} from '../protocol/service.ts';

/** A service of a project file. */
export interface ProjectService {
  name: string;
  /** Position in the file. */
  at: YamlPosition;
  cmd: string;
  /** Absolute. */
  cwd: string;
  /** null: no port. */
  port: number | 'auto' | null;
  /** The port is the same in every stack. */
  isPortFixed: boolean;
  ready: ReadyField | null;
  live: LiveField | null;
  env: [key: string, value: string][];
  dependsOn: Dependency[];
  group: string | null;
  restart: RestartPolicy | RestartRule | undefined;
  limits: RunLimits | null;
  autostart: boolean;
  /** null: the service never sleeps. */
  sleep: SleepRule | null;
  /** Milliseconds, as is stopGrace. */
  startTimeout: number | undefined;
  /** The command that is run first to stop the service. */
  stop: string | null;
  stopSignal: string | undefined;
  stopGrace: number | undefined;
  /** The stack that the service is registered in; null if it is only defined in the file. */
  stack: string | null;
  /** Replaces the daemon's environment as the base; null: no replacement. */
  baseEnv: Record<string, string> | null;
  watch: WatchSpec | null;
  kind: ServiceSpec['kind'];
  inputs: string[];
  schedule: ScheduleSpec | null;
  protocol: ServiceSpec['protocol'] | undefined;
}
