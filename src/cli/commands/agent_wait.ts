// berth agent wait
import type { AgentStanding } from '../../client/records.ts';
import { AGENT_STATES } from '../../protocol/agent_state.ts';
import { defineCommand, durationOption, flagOption, listOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import type { Column } from '../kit/output.ts';
import { namedServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope } from '../kit/stack_scope.ts';

const columnsOf = ({ label }: StackScope): readonly Column<AgentStanding>[] => [
  { title: 'NAME', cell: ({ name }) => label(name), canShrink: true, keepsEnd: true },
  { title: 'STATE', cell: ({ state }) => state },
  { title: 'QUESTION', cell: ({ question }) => question[0] ?? null, canShrink: true },
];

const isState = (word: string): word is AgentStanding['state'] => AGENT_STATES.some((one) => one === word);

/** Parses the names of states. Throws a UsageError for any other word. */
function statesOf(words: readonly string[]): AgentStanding['state'][] {
  const unknown = words.find((word) => !isState(word));
  if (unknown !== undefined)
    throw new UsageError(`${unknown} is no state`, `The states are ${AGENT_STATES.join(', ')}.`);
  return words.filter(isState);
}

export const agentWaitCommand = defineCommand({
  about: 'Prints what they are doing when it is over. Exit code 7 if that is not so in time.',
  args: [{ syntax: '<names...>', about: 'the agents', completes: 'agent' }],
  options: {
    for: listOption(
      '--for <states>',
      'what to wait for; default idle,blocked,asleep,exited: none of them goes on by itself',
      AGENT_STATES,
    ),
    each: flagOption('--each', 'wait for all of them; default: for the first'),
    timeout: durationOption('--timeout <time>', 'time to wait; default 10m'),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth agent wait one two --for blocked', 'until one of them asks something']],
  run: async (context, given, { for: words, each, timeout, ...choice }) => {
    const client = await context.client();
    const scope = await stackScope(client, choice);
    const standings = await client.waitForAgents({
      names: namedServices(scope, given).names,
      mode: each ? 'all' : 'any',
      for: statesOf(words),
      timeout,
    });
    context.out.rows(standings, columnsOf(scope), '');
    return undefined;
  },
});
