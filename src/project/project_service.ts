// A service as a project file says it.
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
  /** null: it has none. */
  port: number | 'auto' | null;
  /** The port holds in every stack. */
  isPortFixed: boolean;
  /** An object, a URL, a path on the service's own port, or `tcp`: see readyUrl. */
  ready: ReadyField | null;
  live: LiveField | null;
  env: [key: string, value: string][];
  dependsOn: Dependency[];
  group: string | null;
  restart: RestartPolicy | RestartRule | undefined;
  limits: RunLimits | null;
  autostart: boolean;
  /** null: it never sleeps. */
  sleep: SleepRule | null;
  /** Milliseconds, as is stopGrace. */
  startTimeout: number | undefined;
  /** The command that is run first to stop it. */
  stop: string | null;
  stopSignal: string | undefined;
  stopGrace: number | undefined;
  /** The stack it is registered in; null while it is only what the file says. */
  stack: string | null;
  /** What it starts from in place of the environment of the daemon; null: nothing. */
  baseEnv: Record<string, string> | null;
  watch: WatchSpec | null;
  kind: ServiceSpec['kind'];
  inputs: string[];
  schedule: ScheduleSpec | null;
  protocol: ServiceSpec['protocol'] | undefined;
}
