import type { AgentType } from './agent_types.ts';
import type { EnvironmentRows } from './base_environment.ts';
import type { SleepRule } from './service.ts';

/** A spinup request with its shape checked: docs/reference.md "Spinup". */
export interface SpinupInput {
  name: string;
  cmd: string | null;
  /** null: a port from `agents.ports`. */
  port: number | null;
  agentType: AgentType | null;
  cwd: string | null;
  env: [key: string, value: string][] | null;
  ready: string | null;
  cols: number;
  rows: number;
  stack: string | null;
  /** null: it never goes to sleep by itself. */
  sleep: SleepRule | null;
  /** null: none; absent: keep the stored one. */
  baseEnv?: EnvironmentRows | null;
}

export interface AgentsProtocol {
  /** Registers the agent and starts its process; replies as soon as the process exists. */
  spinup(message: { input: SpinupInput }): { name: string; port: number; pid: number };
  remove(message: { name: string }): { name: string; port: number };
}
