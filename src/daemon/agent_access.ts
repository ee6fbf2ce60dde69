// Lets the processes of agents call the daemon: docs/reference.md "Agent tokens".
import { AgentTokens } from '../adapters/agent_tokens.ts';
import { runningDaemon } from '../adapters/process/running_daemon.ts';
import { localUrl } from '../adapters/url_host.ts';
import type { AgentLife } from '../protocol/access_key.ts';
import type { EnvironmentRows } from '../protocol/base_environment.ts';
import { statePaths } from '../settings/state_paths.ts';
import type { ThreadData } from './thread_data.ts';

/**
 * Returns a function that makes the variables for one run of an agent. It fails key_unusable, storage_full.
 */
export function agentAccess({ stateDir, api }: ThreadData): (life: AgentLife) => EnvironmentRows {
  const tokens = new AgentTokens(statePaths(stateDir).agentKey);
  // A port left open in the settings is known once the front listens, which is before anything starts.
  const port = (): number | undefined => api.port || runningDaemon(stateDir)?.port;
  return (life) => {
    const known = port();
    return [
      ...(known === undefined ? [] : [['BERTH_URL', localUrl(api.bind, known)] satisfies [string, string]]),
      ['BERTH_AGENT', life.name],
      ['BERTH_AGENT_TOKEN', tokens.issue(life)],
    ];
  };
}
