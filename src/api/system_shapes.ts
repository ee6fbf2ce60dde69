// The daemon's information about itself, and the body of every error.
import { z } from '../adapters/zod.ts';
import { ERRORS } from '../protocol/errors.ts';
import { pid, port, time } from './answer_fields.ts';

export type Version = z.infer<typeof Version>;
export const Version = z.object({
  name: z.literal('berth'),
  version: z.string(),
  pid,
  startedAt: time,
  front: z.string(),
  stateDir: z.string(),
  gatewayPort: port.nullable(),
  apiLevel: z.int(),
});

export const Health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });

export const OpenApi = z.object({ openapi: z.string() }).catchall(z.unknown());

/** docs/reference.md "Errors". */
export const ErrorBody = z
  .object({
    code: z.enum(Object.keys(ERRORS)),
    message: z.string(),
    hint: z.string(),
    details: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .meta({ description: 'For invalid_spec: every wrong field' }),
  })
  .meta({ id: 'Error' });
