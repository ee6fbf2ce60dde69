// The agent that this process belongs to, where its program keeps the agent's variables from its children:
// docs/reference.md "Agent tokens". Without a process table (macOS) it is not found.
import { upwardsFrom } from './ancestors.ts';
import { environOf } from './process_table.ts';
import { variableInEnviron } from './process_tree.ts';

const TOKEN = 'BERTH_AGENT_TOKEN';
const AGENT = 'BERTH_AGENT';
/** What an agent's process has of it. */
const VARIABLES = ['BERTH_URL', AGENT, TOKEN] as const;
/** Each of them names a daemon, and whoever has set it means that one. */
const CHOICES = ['BERTH_URL', 'BERTH_STATE_DIR', 'BERTH_CONFIG'] as const;

/** The environment of the nearest process above this one that has the token of an agent. */
function agentEnviron(): Buffer | undefined {
  for (const pid of upwardsFrom(process.ppid)) {
    const environ = environOf(pid);
    if (environ && variableInEnviron(environ, `${TOKEN}=`)) return environ;
  }
  return undefined;
}

/**
 * Adds the variables of the agent to `env` if its program has kept its token, or all, from this process.
 * `chosen`: the options that name a daemon, as such variables do.
 */
export function rejoinAgent(
  env: NodeJS.ProcessEnv,
  chosen: { url?: string | undefined; stateDir?: string | undefined; config?: string | undefined },
): void {
  const isChosen = [chosen.url, chosen.stateDir, chosen.config].some((option) => option !== undefined);
  const isNamed = !env[AGENT] && (isChosen || CHOICES.some((name) => env[name]));
  const environ = env[TOKEN] || isNamed ? undefined : agentEnviron();
  if (!environ) return;
  for (const name of VARIABLES) env[name] ||= variableInEnviron(environ, `${name}=`) ?? undefined;
}
