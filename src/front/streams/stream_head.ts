// The beginning of every stream of server-sent events.
import { EVENTS } from '../../settings/limits.ts';

const RETRY = `retry: ${EVENTS.reconnectDelayMs}\n\n`;
/** A longer id does not fit in the header in which clients send it. */
const MAX_ID_CHARS = 4_096;

/**
 * The delay before a reconnect, and `id`, from which a client resumes that has had no frame yet; null: it has
 * an id, or may not know one. The id is a comment, because a frame without data is no event.
 */
export const streamHead = (id: string | null): Buffer =>
  Buffer.from(id === null || id.length > MAX_ID_CHARS ? RETRY : `${RETRY}: id ${id}\n\n`);
