// Log entries in JSON: docs/reference.md "Logs of many services".
import { z } from '../adapters/zod.ts';
import { LOG_LEVELS } from '../protocol/logs.ts';
import { exitCode, nameShape, pid, signal, time } from './answer_fields.ts';

const run = z.string().meta({ description: '16 hexadecimal digits', example: '19abf0c1e2d3f456' });

/** A line of a log. */
export type LogTextLine = z.infer<typeof LogTextLine>;
export const LogTextLine = z
  .object({
    name: nameShape,
    run,
    at: time,
    stream: z.enum(['stdout', 'stderr']),
    level: z.enum(LOG_LEVELS).nullable(),
    text: z.string(),
    fields: z
      .record(z.string(), z.unknown())
      .exactOptional()
      .meta({ description: 'The line itself, where it is a JSON object' }),
    offset: z.int().min(0).meta({ description: 'Where it begins in the log of the service' }),
    around: z
      .literal(true)
      .exactOptional()
      .meta({ description: 'With context: not a match itself, but near one' }),
    gap: z.literal(true).exactOptional().meta({ description: 'With context: lines before it are left out' }),
  })
  .meta({ id: 'LogTextLine' });

/** The start or the end of a run, between lines. */
export type LogRunEvent = z.infer<typeof LogRunEvent>;
export const LogRunEvent = z
  .object({
    name: nameShape,
    run,
    at: time,
    event: z.enum(['started', 'ended']),
    pid: pid.nullable(),
    exitCode,
    signal,
  })
  .meta({ id: 'LogRunEvent' });

/** A line, or the start or end of a run. */
export type LogEntry = z.infer<typeof LogEntry>;
export const LogEntry = z.union([LogTextLine, LogRunEvent]).meta({ id: 'LogEntry' });

/** A page of entries, the oldest first. */
export type LogPage = z.infer<typeof LogPage>;
export const LogPage = z
  .object({
    lines: z.array(LogEntry),
    before: z.string().nullable().meta({ description: 'The cursor to older lines; null: there are none' }),
    searchedTo: time.exactOptional().meta({
      description: 'The search took too long: everything since then was searched; continue with before',
    }),
  })
  .meta({ id: 'LogPage' });
