// Events as clients see them: docs/reference.md "Event types".
import { z } from '../adapters/zod.ts';
import { EVENT_TYPES, type EventType } from '../protocol/events.ts';
import { cpu, exitCode, name, pid, port, rssMB, signal, time } from './answer_fields.ts';

/** The data of each type of event. */
export const EVENT_DATA = {
  'service.registered': z.object({ name, port, group: z.string().nullable() }),
  'service.started': z.object({ name, pid, url: z.string() }),
  'service.stopped': z.object({ name, exitCode, signal: signal.exactOptional() }),
  'service.crashed': z.object({ name, exitCode, signal }),
  'service.stats': z.object({ name, cpu, rssMB }),
  'service.removed': z.object({ name }),
  'port.conflict': z.object({ port, claimedBy: z.string(), holder: z.string() }),
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
