// berth agent states, explain, report
import type { Agent, AgentExplanation } from '../../client/records.ts';
import { AGENT_STATES, REPORTED_STATES } from '../../protocol/agent_state.ts';
import { defineCommand, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { agentStateStyle, formatElapsed } from '../kit/format.ts';
import type { Column } from '../kit/output.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope } from '../kit/stack_scope.ts';

/** The order of agents by state: states that need the user's attention come first. */
const ORDER = [
  'blocked',
  'idle',
  'working',
  'starting',
  'asleep',
  'exited',
] as const satisfies Agent['state'][];
const rank = ({ state }: Agent): number => {
  const at = ORDER.indexOf(state);
  return at < 0 ? AGENT_STATES.length : at;
};

const columnsOf = ({ label }: StackScope): readonly Column<Agent>[] => [
  { title: 'NAME', cell: ({ name }) => label(name), canShrink: true, keepsEnd: true },
  { title: 'STATE', cell: ({ state }) => state, style: agentStateStyle },
  { title: 'FOR', cell: ({ stateSince }) => stateSince && formatElapsed(stateSince), alignRight: true },
  { title: 'TYPE', cell: ({ agent_type }) => agent_type },
  { title: 'BY', cell: ({ stateReason: { authority, rule } }) => `${authority}: ${rule}` },
  { title: 'TITLE', cell: ({ title }) => title, canShrink: true },
];

export const agentStatesCommand = defineCommand({
  about: 'Those that wait for an answer come first, with their questions.',
  options: SCOPE_OPTIONS,
  examples: [['berth agent keys bot 1 Enter', 'answer a question']],
  run: async (context, _names, choice) => {
    const client = await context.client();
    const { out } = context;
    const scope = await stackScope(client, choice);
    const agents = (await client.agents())
      .filter(scope.has)
      .sort((one, other) => rank(one) - rank(other) || (one.name < other.name ? -1 : 1));
    out.rows(agents, columnsOf(scope), 'There are no agents. `berth agent spinup` starts one.');
    if (out.isData) return;
    for (const { name, question } of agents.filter(({ question: lines }) => lines.length > 0)) {
      out.line('');
      out.line(`${sanitizeLine(scope.label(name))} asks:`);
      for (const line of question) out.line(`  ${sanitizeLine(line)}`);
    }
  },
});

function explanationText({ authorities, drawnAt, question, ...told }: AgentExplanation): string {
  const { authority, rule } = told.stateReason;
  const since = told.stateSince === null ? '' : ` for ${formatElapsed(told.stateSince)}`;
  const said = authorities.flatMap((view) => [
    `${view.authority.padEnd(7)} ${view.state ?? 'says nothing'}${view.rule ? ` by ${view.rule}` : ''}` +
      (view.at === null ? '' : `, ${formatElapsed(view.at)} ago`) +
      (view.file === null ? '' : ` (${view.file})`),
    ...view.lines.map((line) => `        | ${line}`),
  ]);
  return [
    `${told.name} is ${told.state}${since}, says ${authority} by ${rule}`,
    ...(drawnAt === null ? [] : [`its screen was looked at ${formatElapsed(drawnAt)} ago`]),
    '',
    ...said,
    ...(question.length > 0 ? ['', 'it asks:', ...question.map((line) => `  ${line}`)] : []),
  ]
    .map(sanitizeLine)
    .join('\n');
}

export const agentExplainCommand = defineCommand({
  about: 'Shows what each authority says of the state of an agent, and the lines that made its rule hold.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: SCOPE_OPTIONS,
  run: async (context, [given = ''], choice) => {
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    const explanation = await client.explainAgent(name);
    context.out.record(explanation, () => explanationText(explanation));
  },
});

export const agentReportCommand = defineCommand({
  about: `For the hooks of agents. The state is ${REPORTED_STATES.join(', ')}.`,
  args: [
    { syntax: '<name>', about: 'the agent', completes: 'agent' },
    { syntax: '<state>', about: 'what it is doing' },
  ],
  options: {
    message: textOption('--message <text>', 'what it asks, or says'),
    session: textOption('--session <id>', 'the id of its conversation'),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth agent report bot blocked --message "May I?"', 'bot waits for an answer']],
  run: async (context, [given = '', word = ''], { message, session, ...choice }) => {
    const state = REPORTED_STATES.find((known) => known === word);
    if (!state) throw new UsageError(`${word} is no state`, `There are ${REPORTED_STATES.join(', ')}.`);
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    const told = await client.reportState(name, {
      state,
      ...(message === undefined ? {} : { message }),
      ...(session === undefined ? {} : { session_id: session }),
    });
    context.out.record(told, () => `${given} is ${told.state}`);
  },
});
