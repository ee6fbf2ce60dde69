// Commands: the shape of a request, docs/reference.md "Commands".
import { withoutSession } from '../protocol/base_environment.ts';
import type { CommandInput } from '../protocol/commands.ts';
import { AGENT } from '../settings/agent_limits.ts';
import * as field from './registration_fields.ts';
import { integerField, objectShape, RequestBody, validate, z } from './validation.ts';

const CommandShape = objectShape({
  cmd: field.cmd,
  service: field.name.nullable().optional(),
  cwd: field.cwd.nullable().optional(),
  baseEnv: field.baseEnv.optional(),
  env: field.env.optional(),
  cols: integerField(1, AGENT.maxColsOrRows).optional(),
  rows: integerField(1, AGENT.maxColsOrRows).optional(),
}).meta({ id: 'CommandInput' });

function parseCommand(value: unknown): CommandInput {
  const { rest, faults } = field.checkBeforehand(value, [field.ENV_LIMIT, field.BASE_ENV_LIMIT]);
  const given = validate(CommandShape, rest, faults);
  return {
    cmd: given.cmd,
    service: given.service ?? null,
    cwd: given.cwd ?? null,
    baseEnv: given.baseEnv ? withoutSession(Object.entries(given.baseEnv)) : null,
    env: field.envRows(given.env) ?? [],
    cols: given.cols ?? AGENT.defaultCols,
    rows: given.rows ?? AGENT.defaultRows,
  };
}

export type CommandRequest = z.input<typeof CommandShape>;
export const CommandRequest = new RequestBody(CommandShape, parseCommand);

export const PreparedCommand = z
  .object({ id: z.string().meta({ description: 'For its terminal; valid for ten seconds' }) })
  .meta({ id: 'PreparedCommand' });
