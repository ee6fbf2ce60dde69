// The daemon's information about itself, and the body of every error.
import { z } from '../adapters/zod.ts';
import { ERRORS } from '../protocol/errors.ts';
import { milliseconds, pid, port, time } from './answer_fields.ts';

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

export const MetricsText = z.string();

const bytes = z.int().min(0);
const count = z.int().min(0);
const ActorLoad = z
  .object({
    address: z.string().meta({ description: 'Of an actor, or the prefix of a family' }),
    actors: count,
    waiting: count.meta({ description: 'Messages in the mailboxes' }),
    longest: count.meta({ description: 'Messages in the longest of them' }),
    open: count.meta({ description: 'Messages whose reply is deferred' }),
  })
  .meta({ id: 'ActorLoad' });

const target = z.string().meta({ description: 'Without its secret parts', example: 'webhook example.com' });
const noticeError = z.string().nullable().meta({ description: 'null: it did not fail' });

export const NoticeTests = z
  .object({
    results: z.array(z.object({ target, ok: z.boolean(), error: noticeError, ms: milliseconds })),
  })
  .meta({ id: 'NoticeTests' });

export const System = z
  .object({
    version: z.string(),
    pid,
    startedAt: time,
    rssBytes: bytes,
    storeBytes: bytes,
    journalBytes: bytes,
    host: z.object({ runs: count, logBytes: bytes, droppedBytes: bytes }).nullable(),
    threads: z.array(
      z.object({
        name: z.string(),
        up: z.boolean(),
        restarts: count,
        lagMs: milliseconds.nullable(),
        busyMs: milliseconds.nullable(),
        messages: count.nullable(),
        openAsks: count.nullable(),
        missedDeadlines: count.nullable(),
        crashes: count.nullable(),
        actors: z.array(ActorLoad),
      }),
    ),
    notices: z.array(
      z.object({
        target,
        pending: count,
        delivered: count,
        failed: count,
        dropped: count,
        error: noticeError,
      }),
    ),
    requests: z.array(z.object({ operation: z.string(), code: z.int(), count })),
    openStreams: count,
    openFilesLimit: count,
  })
  .meta({ id: 'System' });

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
