// The beginning of every stream of server-sent events.
import { MAX_CURSOR_LENGTH } from '../../logs/log_cursor.ts';
import { EVENTS } from '../../settings/limits.ts';

const RETRY = `retry: ${EVENTS.reconnectDelayMs}\n\n`;

/**
 * The delay before a reconnect, and `id`, from which a client resumes that has had no frame yet; null: it has
 * an id, or may not know one. One that would be refused is left out. The id is a comment, because a frame
 * without data is no event.
 */
export const streamHead = (id: string | null): Buffer =>
  Buffer.from(id === null || id.length > MAX_CURSOR_LENGTH ? RETRY : `${RETRY}: id ${id}\n\n`);
