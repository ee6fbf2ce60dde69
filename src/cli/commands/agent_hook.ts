// berth agent hook
import { text } from 'node:stream/consumers';
import { REPORTED_STATES } from '../../protocol/agent_state.ts';
import { AGENT_TYPES, codingAgent } from '../../protocol/agent_types.ts';
import { AGENT_STATE } from '../../settings/agent_limits.ts';
import { choiceOption, defineCommand, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';

/** The field names with which programs pass a conversation's id to a hook on stdin. */
const SESSION_FIELDS = ['session_id', 'sessionId', 'conversation_id'];
const MESSAGE_FIELDS = ['message'];

/** The value of the first of `fields` that is a string; undefined if none is. */
function textField(told: unknown, fields: readonly string[]): string | undefined {
  if (!(told instanceof Object)) return undefined;
  const values: unknown[] = fields.map((name) => Reflect.get(told, name));
  return values.find((value) => typeof value === 'string' && value !== '') as string | undefined;
}

/** The JSON that the program passes to its hook on stdin; null if it passes none. */
async function toldOnStdin(): Promise<unknown> {
  if (process.stdin.isTTY) return null;
  try {
    return JSON.parse(await text(process.stdin));
  } catch {
    return null;
  }
}

export const agentHookCommand = defineCommand({
  about:
    'For the hooks that `berth agent init` writes: reports the state of the agent that this process is of, ' +
    'with the conversation that its program names on stdin. Does nothing where Berth has not started it, ' +
    'nor for a program that the agent itself runs.',
  args: [{ syntax: '<state>', about: REPORTED_STATES.join(', ') }],
  options: {
    session: textOption('--session <id>', 'the id of its conversation; default: from stdin'),
    type: choiceOption('--type <type>', 'the program whose hook it is', AGENT_TYPES),
  },
  run: async (context, [word = ''], { session, type }) => {
    const state = REPORTED_STATES.find((known) => known === word);
    if (!state) throw new UsageError(`${word} is no state`, `There are ${REPORTED_STATES.join(', ')}.`);
    const name = process.env['BERTH_AGENT'];
    const { shellVariable } = codingAgent(type ?? null)?.hooks ?? {};
    const isNested = shellVariable !== undefined && process.env[shellVariable] !== undefined;
    if (!name || isNested) return undefined;
    // A caller that names the conversation may leave stdin open.
    const told = session === undefined ? await toldOnStdin() : null;
    const id = session || textField(told, SESSION_FIELDS);
    const message = textField(told, MESSAGE_FIELDS)
      ?.replaceAll(/[\p{Cc}\p{Surrogate}]+/gu, ' ')
      .slice(0, AGENT_STATE.maxHookMessage);
    await (await context.client()).reportState(name, {
      state,
      ...(message === undefined ? {} : { message }),
      ...(id === undefined ? {} : { session_id: id }),
      ...(type ? { agent_type: type } : {}),
    });
    return undefined;
  },
});
