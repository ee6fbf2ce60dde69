// The methods for commands: docs/reference.md "Commands".
import { commands } from '../../api/commands.ts';
import type { CommandRequest } from '../../api/commands_shapes.ts';
import { call, type Endpoint } from '../api_call.ts';
import { type AttachOptions, attachTerminal, type TerminalSession } from '../attach_terminal.ts';

/** The methods of the daemon at `endpoint`. */
export const commandMethods = (endpoint: Endpoint) => ({
  /**
   * Runs a command in the environment of a service, in a terminal of its own. It ends when the session does.
   * Rejects with unknown_service.
   */
  run: async (command: CommandRequest, options: AttachOptions): Promise<TerminalSession> => {
    const { id } = await call(endpoint, commands.prepare, { body: command, signal: options.signal });
    return attachTerminal(endpoint, commands.attach, id, options);
  },
});
