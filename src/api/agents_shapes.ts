// Agents: the shape of a spinup, docs/reference.md "Spinup", and the answers of the operations.

import { REPORTED_STATES } from '../protocol/agent_state.ts';
import { AGENT_TYPES, codingAgent } from '../protocol/agent_types.ts';
import type { SpinupInput } from '../protocol/agents.ts';
import { AGENTS_GROUP, hostLabel } from '../protocol/names.ts';
import { faultOfPrompt } from '../protocol/prompt_text.ts';
import { SERVICE_STATUSES } from '../protocol/service.ts';
import { keyBytes } from '../protocol/terminal_keys.ts';
import { AGENT, AGENT_STATE, PROMPT, SHARE } from '../settings/agent_limits.ts';
import { HTTP } from '../settings/limits.ts';
import {
  agentState,
  agentType,
  nameShape,
  pid,
  place,
  port,
  removed,
  stateReason,
  time,
} from './answer_fields.ts';
import * as field from './registration_fields.ts';
import {
  type InvalidField,
  integerField,
  objectShape,
  RequestBody,
  stringField,
  validate,
  z,
} from './validation.ts';

export { LogLine, Logs, SleepResult, StartResult } from './services_shapes.ts';

const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** A message of one line, or an id. */
const shortText = (max: number) =>
  stringField(
    `must be a text of at most ${max} characters without control characters`,
    (text) => text.length <= max && !/[\0-\x1f\x7f-\x9f]/.test(text),
  );

const SpinupShape = objectShape(
  {
    name: field.name.refine(
      (value) => HOST_LABEL.test(hostLabel(value)),
      'must be a host label when _ is written -',
    ),
    cmd: field.cmd.optional(),
    port: integerField(1, 65_535).optional(),
    agent_type: z
      .enum(AGENT_TYPES, `must be one of ${AGENT_TYPES.join(', ')}`)
      .nullable()
      .optional(),
    cwd: field.cwd.nullable().optional(),
    env: field.env.optional(),
    ready: field.agentReady.nullable().optional(),
    cols: integerField(1, AGENT.maxColsOrRows).optional(),
    rows: integerField(1, AGENT.maxColsOrRows).optional(),
    stack: field.stack.nullable().optional(),
    sleep: field.sleep.nullable().optional(),
    baseEnv: field.baseEnv.optional(),
  },
  ['active', 'pid', 'hostname', 'group', 'project', 'service', 'url', 'gatewayUrl'],
).meta({ id: 'SpinupInput' });

function nothingToRun(value: unknown): InvalidField[] {
  if (!(value instanceof Object) || Array.isArray(value)) return [];
  if ('cmd' in value || ('agent_type' in value && value.agent_type !== null)) return [];
  return [{ path: 'cmd', message: 'cmd must be given when agent_type is not' }];
}

/** Refuses `sleep` for a type without stored conversations: each wake would begin a new one. */
function nothingToWake(value: unknown): InvalidField[] {
  if (!(value instanceof Object) || !('sleep' in value) || value.sleep === null) return [];
  const type = 'agent_type' in value ? AGENT_TYPES.find((known) => known === value.agent_type) : undefined;
  if (type !== undefined && codingAgent(type)?.session) return [];
  return [{ path: 'sleep', message: 'sleep is for types of agents that keep their conversations' }];
}

/** Fills in the defaults that do not depend on the agent's type. The actor `agents` fills in the others. */
function parseSpinup(value: unknown): SpinupInput {
  const { rest, faults } = field.checkBeforehand(value, [field.ENV_LIMIT, field.BASE_ENV_LIMIT]);
  const given = validate(SpinupShape, rest, [
    ...faults,
    ...nothingToRun(rest),
    ...nothingToWake(rest),
    ...field.faultsOfStack(rest),
  ]);
  return {
    name: given.name,
    cmd: given.cmd ?? null,
    port: given.port ?? null,
    agentType: given.agent_type ?? null,
    cwd: given.cwd ?? null,
    env: field.envRows(given.env),
    ready: given.ready ?? null,
    cols: given.cols ?? AGENT.defaultCols,
    rows: given.rows ?? AGENT.defaultRows,
    stack: given.stack ?? null,
    sleep: given.sleep ?? null,
    ...field.baseEnvRows(given.baseEnv),
  };
}

/** The body of `spinup`; `cmd` or `agent_type` is required. */
export type SpinupRequest = z.input<typeof SpinupShape>;
export const SpinupRequest = new RequestBody(SpinupShape, parseSpinup);

const KeysShape = objectShape({
  keys: z
    .array(
      stringField(
        'must be a key such as Enter, Down, C-c or M-x, or one character',
        (key) => keyBytes(key) !== null,
      ),
      'must be a list of keys',
    )
    .min(1, 'must name a key')
    .max(AGENT.maxKeys, `must name at most ${AGENT.maxKeys} keys`)
    .optional(),
  text: stringField('must be text without NUL').optional(),
}).meta({ id: 'KeysInput' });

/** Exactly one of `keys` and `text` is required. */
export type KeysRequest = z.input<typeof KeysShape>;
export const KeysRequest = new RequestBody(KeysShape, (value) => {
  const given = value instanceof Object ? value : {};
  const isOne = 'keys' in given !== 'text' in given;
  const faults = isOne ? [] : [{ path: 'keys', message: 'keys or text must be given, and not both' }];
  const { keys = [], text = '' } = validate(KeysShape, value, faults);
  return { keys, text };
});

const PromptShape = objectShape({
  text: stringField('must be text'),
  wait: z.union([z.enum(['idle', 'change']), z.literal(false)], 'must be idle, change or false').optional(),
  queue: z.boolean('must be true or false').optional(),
  pid: integerField(1, PROMPT.maxPid).optional(),
  timeout: integerField(0, HTTP.maxQueryDurationMs).optional(),
}).meta({ id: 'PromptInput' });

function faultsOfText(value: unknown): InvalidField[] {
  const text = value instanceof Object && 'text' in value ? value.text : undefined;
  if (typeof text !== 'string') return [];
  const isFit = text !== '' && Buffer.byteLength(text) <= PROMPT.maxBytes;
  const fault = isFit ? faultOfPrompt(text) : `must be 1 to ${PROMPT.maxBytes} bytes`;
  return fault === null ? [] : [{ path: 'text', message: `text ${fault}` }];
}

export type PromptRequest = z.input<typeof PromptShape>;
export const PromptRequest = new RequestBody(PromptShape, (value) => {
  const { text, wait, queue, pid: only, timeout } = validate(PromptShape, value, faultsOfText(value));
  return {
    text,
    wait: wait || null,
    queue: queue ?? false,
    pid: only ?? null,
    timeoutMs: timeout ?? PROMPT.defaultTimeoutMs,
  };
});

const ShareShape = objectShape({
  mode: z.literal('observe', 'must be observe').optional(),
  minutes: integerField(1, SHARE.maxMinutes),
}).meta({ id: 'ShareInput' });

export type ShareRequest = z.input<typeof ShareShape>;
export const ShareRequest = new RequestBody(ShareShape, (value) => validate(ShareShape, value, []));

const Share = z.object({
  id: z.string(),
  name: nameShape,
  mode: z.literal('observe'),
  createdAt: z.string(),
  expiresAt: z.string(),
});

export type Shared = z.infer<typeof Shared>;
export const Shared = Share.extend({
  token: z.string().meta({ description: 'Shown only in this response' }),
}).meta({ id: 'Shared' });

export type AgentShare = z.infer<typeof AgentShare>;
export const AgentShare = Share.extend({ viewers: z.int() }).meta({ id: 'AgentShare' });

export const ShareList = z.object({ shares: z.array(AgentShare) });

export const SharesRevoked = z.object({ name: nameShape, revoked: z.array(z.string()) });

export const Typed = z.object({ name: nameShape, bytes: z.int().min(0) });

export type Screen = z.infer<typeof Screen>;
export const Screen = z
  .object({
    name: nameShape,
    cols: z.int(),
    rows: z.int(),
    cursor: z.object({ x: z.int(), y: z.int() }).meta({ description: 'Column and row, from 0' }),
    altScreen: z.boolean().meta({ description: 'A full-screen program is using the alternate screen' }),
    title: z.string().meta({ description: 'The title of its window; empty: none' }),
    lines: z.array(z.string()).meta({ description: 'One for each row' }),
  })
  .meta({ id: 'Screen' });

export type Agent = z.infer<typeof Agent>;
export const Agent = z
  .object({
    port,
    name: nameShape,
    active: z.boolean(),
    pid: pid.nullable(),
    hostname: z.string(),
    agent_type: agentType,
    group: z.literal(AGENTS_GROUP),
    ...place,
    state: agentState,
    stateSince: time.nullable().meta({ description: 'null: it has never run' }),
    stateReason,
    question: z.array(z.string()).meta({ description: 'The lines of the question while it is blocked' }),
    title: z.string().meta({ description: 'The title of its window; empty: none' }),
    lastOutputAt: time.nullable(),
    viewers: z.int().min(0).meta({ description: 'How many viewers are attached to its terminal' }),
    cwd: z.string(),
    sessionId: z.string().nullable().meta({ description: 'The id of its conversation; null: not known' }),
  })
  .meta({ id: 'Agent' });

export type AgentStanding = z.infer<typeof AgentStanding>;
export const AgentStanding = Agent.pick({
  name: true,
  state: true,
  stateSince: true,
  stateReason: true,
  question: true,
}).meta({ id: 'AgentStanding' });

export const AgentStandings = z.object({ agents: z.array(AgentStanding) });

export type Prompted = z.infer<typeof Prompted>;
export const Prompted = AgentStanding.extend({
  lines: z.array(z.string()).nullable().meta({ description: 'New lines on its screen; null: without wait' }),
}).meta({ id: 'Prompted' });

export type AgentDetail = z.infer<typeof AgentDetail>;
export const AgentDetail = z
  .object({
    ...Agent.shape,
    status: z.enum(SERVICE_STATUSES),
    startedAt: time.nullable(),
    cmd: z.string(),
    url: z.string(),
    gatewayUrl: z.string().nullable(),
    cols: z.int(),
    rows: z.int(),
    envKeys: z.array(z.string()),
  })
  .meta({ id: 'AgentDetail' });

const StateReportShape = objectShape({
  state: z.enum(REPORTED_STATES, `must be one of ${REPORTED_STATES.join(', ')}`),
  message: shortText(AGENT_STATE.maxHookMessage).nullable().optional(),
  session_id: shortText(AGENT_STATE.maxSessionId).nullable().optional(),
  agent_type: agentType
    .meta({ description: "Of the hook's program. A report of another program than the agent's is ignored" })
    .optional(),
}).meta({ id: 'StateReportInput' });

/** The state that a hook reports of its agent. */
export type StateReport = z.input<typeof StateReportShape>;
export const StateReport = new RequestBody(StateReportShape, (value) => {
  const { state, message, session_id, agent_type } = validate(StateReportShape, value);
  return {
    state,
    message: message || null,
    sessionId: session_id || null,
    reporter: agent_type ?? null,
  };
});

const toldState = { name: nameShape, state: agentState, stateSince: time.nullable(), stateReason };

export const AgentStateTold = z.object(toldState);

export type AgentExplanation = z.infer<typeof AgentExplanation>;
export const AgentExplanation = z
  .object({
    ...toldState,
    question: z.array(z.string()),
    drawnAt: time.nullable().meta({ description: 'When its screen was last examined' }),
    authorities: z.array(
      z.object({
        authority: stateReason.shape.authority,
        state: agentState.nullable().meta({ description: 'null: no verdict now' }),
        rule: z.string().nullable(),
        at: time.nullable(),
        file: z.string().nullable().meta({ description: 'The file of the rule' }),
        lines: z.array(z.string()).meta({ description: 'The lines that matched the rule' }),
      }),
    ),
  })
  .meta({ id: 'AgentExplanation' });

export const AgentList = z.object({ agents: z.array(Agent) });

export type SpunUp = z.infer<typeof SpunUp>;
export const SpunUp = z
  .object({
    port,
    name: nameShape,
    active: z.boolean(),
    hostname: z.string(),
    pid,
    url: z.string(),
    gatewayUrl: z.string().nullable(),
    agent_type: agentType,
  })
  .meta({ id: 'SpunUp' });

export type AgentRemoved = z.infer<typeof AgentRemoved>;
export const AgentRemoved = z.object({ removed, name: nameShape, port });
