// Fields shared by the answers of several resources.
import { z } from '../adapters/zod.ts';
import { AGENT_STATES, STATE_AUTHORITIES } from '../protocol/agent_state.ts';
import { AGENT_TYPES } from '../protocol/agent_types.ts';
import { END_CAUSES, SERVICE_STATUSES } from '../protocol/service.ts';

export const nameShape = z.string().meta({ description: 'Its unique name', example: 'web' });
export const port = z.int().min(1).max(65_535);
export const pid = z.int().min(1);
export const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$/)
  .meta({
    id: 'Time',
    format: 'date-time',
    description: 'RFC 3339, with the local offset; of the cloud API in UTC',
  });
export const exitCode = z.int().nullable().meta({ description: 'null when a signal ended the process' });
export const signal = z.string().nullable().meta({ example: 'SIGTERM' });
export const endCause = z
  .enum(END_CAUSES)
  .meta({ description: 'Why it was ended, if no client requested that' });
export const milliseconds = z.number().min(0).meta({ description: 'Milliseconds' });
export const cpu = z
  .number()
  .min(0)
  .meta({ description: 'Cores over the whole process tree: 1.0 is one core busy' });
export const rssMB = z
  .int()
  .min(0)
  .meta({ description: 'Resident memory of the whole process tree in megabytes' });
export const removed = z.boolean().meta({ description: 'false, with 202: it is still being removed' });
/** The project and the stack of a service, and its name in the stack; null: no project registered it. */
export const place = {
  project: z.string().nullable().meta({ example: 'shop' }),
  stack: z.string().nullable().meta({ description: 'The project at one branch', example: 'shop--login' }),
  service: z.string().nullable().meta({ description: 'Its name within the stack', example: 'web' }),
};
export const agentType = z.enum(AGENT_TYPES).nullable();
export const agentState = z.enum(AGENT_STATES);
export const stateReason = z
  .object({ authority: z.enum(STATE_AUTHORITIES), rule: z.string() })
  .meta({ description: 'Which authority decided, and by which rule' });
export const status = z
  .enum(SERVICE_STATUSES)
  .meta({ id: 'Status', description: 'starting: its ready-check has not passed yet' });

/** The id of a resource of the cloud API. */
export const id = z.string().describe('A ULID');
export const utcTimeShape = z.iso.datetime().describe('RFC 3339, UTC');

/** The id of an agent's conversation. */
export const sessionId = z.string().nullable().meta({ description: 'null: none is known' });
