// Events as clients see them: docs/reference.md "Event types".
import { z } from '../adapters/zod.ts';
import { EVENT_TYPES, type EventType } from '../protocol/events.ts';
import {
  agentState,
  cpu,
  endCause,
  exitCode,
  id,
  milliseconds,
  nameShape,
  pid,
  port,
  rssMB,
  sessionId,
  signal,
  stateReason,
  time,
  utcTimeShape,
} from './answer_fields.ts';

/** The data of each type of event. */
export const EVENT_DATA = {
  'service.registered': z.object({ name: nameShape, port: port.nullable(), group: z.string().nullable() }),
  'service.started': z.object({
    name: nameShape,
    pid,
    url: z.string().nullable(),
    protocol: z.literal('tcp').exactOptional(),
  }),
  'service.stopped': z.object({ name: nameShape, exitCode, signal: signal.exactOptional() }),
  'service.crashed': z.object({ name: nameShape, exitCode, signal, cause: endCause.exactOptional() }),
  'service.completed': z.object({ name: nameShape, ms: milliseconds }),
  'service.unhealthy': z.object({ name: nameShape, check: z.string(), error: z.string().nullable() }),
  'service.stats': z.object({ name: nameShape, cpu, rssMB }),
  'service.removed': z.object({ name: nameShape }),
  'service.changed': z.object({ name: nameShape, paths: z.array(z.string()) }),
  'service.slept': z.object({ name: nameShape }),
  'service.woke': z.object({ name: nameShape, ms: milliseconds }),
  'service.wake_failed': z.object({ name: nameShape, reason: z.string() }),
  'agent.forced': z.object({ name: nameShape, agent: nameShape, operation: z.string() }),
  'agent.state': z.object({
    name: nameShape,
    state: agentState,
    previous: agentState,
    reason: stateReason,
  }),
  'agent.slept': z.object({ name: nameShape, sessionId }),
  'agent.woke': z.object({ name: nameShape, sessionId, ms: milliseconds }),
  'port.conflict': z.object({ port, claimedBy: z.string(), holder: z.string() }),
  'cluster.refused': z.object({ name: z.string(), clusterId: id }),
  'cluster.accepted': z.object({ name: z.string(), clusterId: id }),
  'cluster.expiring': z.object({ name: z.string(), clusterId: id, expiresAt: utcTimeShape }),
} satisfies Record<EventType, z.ZodObject>;

/** The fields that `?detail=true` adds to the data of every event. */
export const EVENT_DETAIL = z.object({
  at: time.exactOptional(),
  run: z.string().nullable().exactOptional(),
});

export const Event = z
  .union(
    EVENT_TYPES.map((type) =>
      z
        .object({
          id: z.int().min(1),
          type: z.literal(type),
          data: z.object({ ...EVENT_DATA[type].shape, ...EVENT_DETAIL.shape }),
        })
        .meta({ title: type }),
    ),
  )
  .meta({ id: 'Event', description: 'On the stream: id and event lines, and data as JSON' });

export const EventList = z.object({ events: z.array(Event) });
