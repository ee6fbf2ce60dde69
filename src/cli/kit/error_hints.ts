// Hints that tell a user of the command line what to do about an error.
import { type ClientErrorCode, isBerthError } from '../../client/errors.ts';
import type { ErrorCode } from '../../protocol/errors.ts';

/** Hints that name commands. They replace the daemon's hints, which name HTTP requests. */
const COMMAND_HINTS: Partial<Record<string, string>> = {
  invalid_spec: '`berth help <command>` describes its arguments.',
  unauthorized:
    'Set auth.token, or cloud.token for `berth k8s`, in the configuration to the token of the daemon.',
  unproven:
    'Set auth.token, or cloud.token for `berth k8s`, in the configuration to the token of the daemon. If it ' +
    'is set, another program may have taken the port: `berth doctor` tells more.',
  forbidden_owner:
    'An agent may only use its own stack. Do the rest yourself from your own shell, or with --force.',
  unknown_service: '`berth ps` lists the services.',
  unknown_stack: '`berth stacks` lists the stacks.',
  unknown_group: '`berth group ls` lists the groups.',
  unknown_agent: '`berth agent ls` lists the agents.',
  unknown_cluster: '`berth k8s clusters` lists the clusters.',
  unknown_workload: '`berth k8s workloads` lists the workloads; `berth k8s sync` discovers new ones.',
  unknown_tether: '`berth k8s tethers` lists the tethers.',
  unknown_policy: '`berth k8s policy ls` lists the policies.',
  unknown_token: '`berth k8s tokens ls` lists the tokens.',
  unknown_grant: '`berth k8s grants ls` lists the grants.',
  unknown_operation: '`berth k8s history` shows earlier operations.',
  key_reused: 'Give each new change its own key.',
  already_running: '`berth restart` restarts it.',
  agent_blocked: 'Answer with `berth agent keys` or `berth agent attach`; then try again.',
  agent_working:
    'Wait until it is idle with `berth agent wait`; `berth agent prompt --queue` does so itself.',
  agent_stalled: 'The prompt was typed: check `berth agent screen`.',
  writer_attached: 'Watch it with --observe, or take over with --takeover.',
  not_running: '`berth start` starts a service; `berth agent wake` an agent, which resumes its conversation.',
} satisfies Partial<Record<ErrorCode | ClientErrorCode, string>>;

/** The hint of `error`, preceded by the agent's question if the agent asks one; '' without either. */
export function hintOf(error: unknown): string {
  if (isBerthError(error)) {
    const hint = COMMAND_HINTS[error.code] ?? error.hint;
    const question = error.details.filter(({ path }) => path === 'question').map(({ message }) => message);
    return [...question, hint].join('\n');
  }
  return error instanceof Error && 'hint' in error && typeof error.hint === 'string' ? error.hint : '';
}
