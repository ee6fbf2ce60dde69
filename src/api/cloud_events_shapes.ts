// Cloud events and operations as clients see them: docs/reference.md "Cloud events".
import { z } from '../adapters/zod.ts';
import { CLOUD_EVENT_TYPES } from '../protocol/cloud_events.ts';
import { OPERATION_STATES } from '../protocol/cloud_operations.ts';
import { WORKLOAD_KINDS } from '../protocol/workload_kinds.ts';
import { id, utcTimeShape } from './answer_fields.ts';

/** The fields that events and operations share. */
const subject = {
  cluster_id: id.nullable(),
  cluster: z.string().nullable().describe('Its name'),
  namespace: z.string().nullable(),
  kind: z.enum(WORKLOAD_KINDS).nullable(),
  workload: z.string().nullable().describe('Its name'),
  workload_id: id.nullable(),
  tether_id: id.nullable(),
};

const who = z
  .string()
  .describe('token, agent:<name>, policy:<name>, annotation:workload, annotation:namespace, or berth itself');
const result = z.string().describe('ok, the code of the error, or interrupted');
const action = z.string().describe('What was asked for, as this document names it');

export type CloudEvent = z.infer<typeof CloudEvent>;
export const CloudEvent = z
  .object({
    id: z.int().min(1),
    at: utcTimeShape,
    type: z.enum(CLOUD_EVENT_TYPES),
    who,
    from: z.string().nullable().describe('The address that the request came from'),
    action: action.nullable(),
    operation_id: id.nullable(),
    result,
    ...subject,
    reason: z.string().nullable(),
  })
  .meta({ id: 'CloudEvent', description: 'On the stream: id and event lines, and all of it as data' });

export const CloudEventList = z.array(CloudEvent);

export type CloudOperation = z.infer<typeof CloudOperation>;
export const CloudOperation = z
  .object({
    id,
    action,
    state: z
      .enum(OPERATION_STATES)
      .describe('asked: under way; done: it has its result; failed: it may be tried again with its key'),
    who,
    from: z.string().nullable().describe('null: no request, a policy'),
    asked_at: utcTimeShape,
    settled_at: utcTimeShape.nullable(),
    result: result.nullable().describe('ok, the code of the error, or interrupted; null: it is under way'),
    reason: z.string().nullable(),
    ...subject,
  })
  .meta({ id: 'CloudOperation' });
