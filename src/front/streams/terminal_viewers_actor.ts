// State: none of its own; it passes messages to the sockets of the viewers. Rebuilt from: nothing; viewers
// attach again.
import type { TerminalViewersProtocol } from '../../protocol/terminal.ts';
import { actor } from '../../runtime/actor.ts';
import type { TerminalSockets } from './terminal_sockets.ts';

/** A refused message would be missing from a terminal, and forwarding one takes almost no time. */
const LIMITS = { mailbox: 1_000_000 };

/** At `viewers`, on the thread of the front. */
export const terminalViewersActor = actor<TerminalViewersProtocol, TerminalSockets>(
  'viewers',
  (_context, { handlers }) => handlers,
  LIMITS,
);
