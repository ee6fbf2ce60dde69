// Commands that a person runs beside a service: docs/reference.md "Commands".
import type { EnvironmentRows } from './base_environment.ts';

/** What to run, with its shape checked. */
export interface CommandInput {
  /** The command for `/bin/sh -c`. */
  cmd: string;
  /** Whose environment and folder it gets; null: that of no service. */
  service: string | null;
  /** null: the folder of the service, else the home folder. */
  cwd: string | null;
  /** What it starts from without a service; null: the environment of the daemon. */
  baseEnv: EnvironmentRows | null;
  /** Further variables, which win over those of the service. */
  env: EnvironmentRows;
  cols: number;
  rows: number;
}

/** The actor of a command is `service:<id>`, as the process host knows it by that name. */
export const COMMAND_ID_PATTERN = /^run-[0-9a-f]{16}$/;

/** Handled by `service:<id>`, together with the messages of its terminal. */
export interface CommandProtocol {
  /**
   * Keeps the command until a terminal is attached, which starts it. Its end, or that of the terminal, ends
   * everything. Fails unknown_service, key_unusable, name_in_use, and daemon_busy when too many are kept.
   */
  prepare(message: { input: CommandInput }): null;
}
