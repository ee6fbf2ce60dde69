// The handlers of waits and prompts: docs/reference.md "Waiting for agents", "Prompt".
import type { agents } from '../../../api/agents.ts';
import type { AgentStanding } from '../../../api/agents_shapes.ts';
import type { AnswerOf, BodyOf } from '../../../api/operation.ts';
import { serviceAddress } from '../../../protocol/address.ts';
import type { AgentStateName } from '../../../protocol/agent_state.ts';
import { fail } from '../../../protocol/errors.ts';
import { newRunId } from '../../../protocol/names.ts';
import { isFailure } from '../../../runtime/actor.ts';
import { PROMPT } from '../../../settings/agent_limits.ts';
import { standingOf } from '../../views/service_json.ts';
import type { AppContext } from '../app_context.ts';

/** The states in which an agent does not continue by itself. */
const RESTING: readonly AgentStateName[] = ['idle', 'blocked', 'asleep', 'exited'];
/** Extra time for the answer, beyond that of the prompt itself. */
const ANSWER_MARGIN_MS = 30_000;

interface WaitRequest {
  query: { for: AgentStateName[] | null; timeout: number | null };
  onGone(listener: () => void): void;
}

/** Waits for agents; throws as `AgentWaits.wait` does. */
export const waitForAgents = (
  { agentWaits }: AppContext,
  names: readonly string[],
  mode: 'any' | 'all',
  { query, onGone }: WaitRequest,
): Promise<AgentStanding[]> =>
  agentWaits.wait({
    names,
    mode,
    for: query.for ?? RESTING,
    timeoutMs: query.timeout ?? PROMPT.defaultTimeoutMs,
    onGone,
  });

/** Failures after which it is unknown whether the prompt was typed. */
const UNKNOWN_CODES: ReadonlySet<string> = new Set(['gone', 'crashed', 'deadline']);

/** Types a prompt into the terminal of `name`. */
export async function promptAgent(
  { agentWaits, ref }: AppContext,
  name: string,
  body: BodyOf<typeof agents.prompt>,
  onGone: (listener: () => void) => void,
): Promise<AnswerOf<typeof agents.prompt>> {
  const service = ref(serviceAddress(name));
  const id = newRunId(Date.now());
  const limit = { deadlineMs: body.timeoutMs + PROMPT.stalledMs + ANSWER_MARGIN_MS };
  const asked = service.ask('prompt', { id, ...body }, limit).catch((error: unknown) => {
    // The code must not be one that clients retry: the prompt may already have been typed.
    if (!isFailure(error) || !UNKNOWN_CODES.has(error.code)) throw error;
    throw fail('agent_stalled', `it is unknown whether the prompt was typed: ${error.message}`);
  });
  onGone(() => service.tell('cancelPrompt', { id }));
  const { status, lines } = await agentWaits.whileServing(asked);
  return { ...standingOf(status), lines };
}
