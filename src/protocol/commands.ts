// Commands that a person runs beside a service: docs/reference.md "Commands".
import type { EnvironmentRows } from './base_environment.ts';

/** What to run, with its shape checked. */
export interface CommandInput {
  /** The command for `/bin/sh -c`. */
  cmd: string;
  /** The service whose environment and folder it gets; null: none. */
  service: string | null;
  /** null: the folder of the service, or else the home folder. */
  cwd: string | null;
  /** The base environment without a service; null: the daemon's own. */
  baseEnv: EnvironmentRows | null;
  /** Additional variables, which override those of the service. */
  env: EnvironmentRows;
  cols: number;
  rows: number;
}

/**
 * The actor of a command is `service:<id>`, because the process host knows runs only by that kind of name.
 */
export const COMMAND_ID_PATTERN = /^run-[0-9a-f]{16}$/;

/** Handled by `service:<id>`, together with the messages of its terminal. */
export interface CommandProtocol {
  /**
   * Keeps the command until a terminal is attached, which starts it. When the command or its terminal ends,
   * so does everything else. Fails unknown_service, key_unusable, name_in_use, and daemon_busy when too many
   * are kept.
   */
  prepare(message: { input: CommandInput }): null;
}
