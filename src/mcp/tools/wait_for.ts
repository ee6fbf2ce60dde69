// The tool `wait_for`: until a service has a status, prints a line, or something happens.
import { BerthError } from '../../client/errors.ts';
import type { DaemonEvent } from '../../client/records.ts';
import type { EventType } from '../../protocol/events.ts';
import type { ServiceStatus } from '../../protocol/service.ts';
import type { ToolCall } from '../tool.ts';

interface WaitInput {
  name?: string | undefined;
  status?: ServiceStatus | undefined;
  text?: string | undefined;
  regex?: string | undefined;
  event?: EventType | undefined;
  since?: number | undefined;
  timeout?: number | undefined;
}

interface EventFound {
  id: number;
  type: EventType;
  data: Record<string, unknown>;
}

interface WaitAnswer {
  met: boolean;
  waitedMs: number;
  status: ServiceStatus | null;
  line: string | null;
  event: EventFound | null;
}

/** What the wait has found, apart from a status. */
type Found = Partial<Pick<WaitAnswer, 'line' | 'event'>>;

const DEFAULT_TIMEOUT_MS = 30_000;

const invalid = (message: string): BerthError =>
  new BerthError('invalid_spec', message, {
    hint: 'Give exactly one of status, text, regex and event; a name with all but event.',
  });

/** The frame as an event of the journal; null for `stream.reset`. */
function eventOf({ id, type, data }: DaemonEvent): EventFound | null {
  return type === 'stream.reset' || id === null ? null : { id, type, data: { ...data } };
}

/** The id of the newest event. What happens after it is replayed, so nothing is missed in between. */
const newestEvent = async ({ client, signal }: ToolCall): Promise<number> =>
  (await client.history({ limit: 1, signal })).at(-1)?.id ?? 0;

async function untilStatus(call: ToolCall, name: string, wanted: ServiceStatus): Promise<Found | null> {
  const { client, signal } = call;
  const lastEventId = await newestEvent(call);
  const isReached = async (): Promise<boolean> => (await client.service(name, { signal })).status === wanted;
  if (await isReached()) return {};
  for await (const _event of client.events({ names: [name], lastEventId, signal }))
    if (await isReached()) return {};
  return null;
}

async function untilEvent(call: ToolCall, { event, name, since }: WaitInput): Promise<Found | null> {
  const { client, signal } = call;
  const lastEventId = since ?? (await newestEvent(call));
  const names = name === undefined ? [] : [name];
  const types: EventType[] = event === undefined ? [] : [event, 'service.removed'];
  for await (const one of client.events({ types, names, lastEventId, signal })) {
    const found = eventOf(one);
    if (found?.type === event) return { event: found };
    // A service that is removed has no more events. Fails unless it is registered again.
    if (found && name !== undefined) await client.service(name, { signal });
  }
  return null;
}

/** The first matching line of the current run, or of a later one. */
async function untilLine(call: ToolCall, name: string, { text: q, regex }: WaitInput): Promise<Found | null> {
  const { client, signal } = call;
  for await (const one of client.streamLogs({ names: [name], q, regex, limit: 1, run: 'last', signal }))
    if ('text' in one) return { line: one.text };
  return null;
}

function wantedOf(call: ToolCall, input: WaitInput): Promise<Found | null> {
  const { name, status, event, text, regex } = input;
  if ([status, event, text, regex].filter((one) => one !== undefined).length !== 1)
    throw invalid('it is not clear what to wait for');
  if (event !== undefined) return untilEvent(call, input);
  if (name === undefined) throw invalid('name is missing');
  return status === undefined ? untilLine(call, name, input) : untilStatus(call, name, status);
}

/** The status after the wait; null where none was named, or where the event is the end of the service. */
async function statusOf(
  { client, signal }: ToolCall,
  { name }: WaitInput,
  found: Found | null,
): Promise<ServiceStatus | null> {
  if (name === undefined || found?.event?.type === 'service.removed') return null;
  return (await client.service(name, { signal })).status;
}

/** Waits as `input` says. Rejects with a BerthError, and with the reason of the call's signal. */
export async function waitFor(call: ToolCall, input: WaitInput): Promise<WaitAnswer> {
  const { signal } = call;
  const { timeout = DEFAULT_TIMEOUT_MS } = input;
  const began = performance.now();
  const late = AbortSignal.timeout(timeout);
  const inTime = { ...call, signal: AbortSignal.any([signal, late]) };
  const found = await wantedOf(inTime, input).catch((error: unknown) => {
    if (late.aborted && !signal.aborted) return null;
    throw error;
  });
  signal.throwIfAborted();
  const status = await statusOf(call, input, found);
  const waitedMs = Math.round(performance.now() - began);
  return { met: found !== null, waitedMs, status, line: null, event: null, ...found };
}
