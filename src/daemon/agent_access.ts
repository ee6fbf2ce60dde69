// What the processes of agents get to ask the daemon: docs/reference.md "Token of an agent".
import { AgentTokens } from '../adapters/agent_tokens.ts';
import { runningDaemon } from '../adapters/process/running_daemon.ts';
import { localUrl } from '../adapters/url_host.ts';
import type { AgentLife } from '../protocol/access_key.ts';
import type { EnvironmentRows } from '../protocol/base_environment.ts';
import { statePaths } from '../settings/state_paths.ts';
import type { ThreadData } from './thread_data.ts';

/** Makes the variables of one life of an agent. The function fails key_unusable, storage_full. */
export function agentAccess({ stateDir, api }: ThreadData): (life: AgentLife) => EnvironmentRows {
  const tokens = new AgentTokens(statePaths(stateDir).agentKey);
  // A port that the settings leave open is known once the front listens, which is before anything starts.
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
