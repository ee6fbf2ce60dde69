// A terminal of an agent over a WebSocket, docs/reference.md "Attach": binary frames are input and output,
// text frames are control.
import type { Operation } from '../api/operation.ts';
import { TOKEN_PROTOCOL } from '../protocol/access_key.ts';
import { changedAccess, type Endpoint, pathOf, queryString } from './api_call.ts';
import { base64url } from './base64url.ts';
import { BerthError, errorFromAnswer, isBerthError } from './errors.ts';
import { InputWindow } from './input_window.ts';
import type { Access } from './prove_server.ts';
import type { ClientWebSocket } from './transport.ts';

export interface AttachOptions {
  /**
   * Called with output as it arrives. The first piece is the current screen. The output is acknowledged when
   * the returned promise resolves.
   */
  onOutput: (bytes: Uint8Array) => void | Promise<void>;
  /**
   * `write`: as the only writer; `observe`: watch only, so the session's `write` and `resize` do nothing.
   * Absent: type alongside all others.
   */
  mode?: 'write' | 'observe' | undefined;
  /** With `write`: replaces the current writer. */
  takeover?: boolean | undefined;
  /** Called with the size of the terminal, at first and after each change by a viewer. */
  onSize?: (cols: number, rows: number) => void;
  /** Called with the number of bytes of input that wait to be sent, whenever it has changed. */
  onUnsent?: (bytes: number) => void;
  /** Ends the session; the agent keeps running. */
  signal?: AbortSignal;
}

export interface TerminalEnd {
  /** null: the viewer detached, or the connection was lost. */
  exit: { exitCode: number | null; signal: string | null } | null;
  /** The close code of the connection; 1000 is normal, 4001 means that another viewer has taken over. */
  code: number;
  reason: string;
  /** The last bytes of input that the terminal is not known to have taken; 0 for a few keys. */
  undelivered: number;
}

export interface TerminalSession {
  /**
   * Sends keys, as bytes or text. What the program does not read waits here: see `onUnsent`. From then on
   * nothing that is written overtakes it.
   */
  write(input: string | Uint8Array): void;
  resize(cols: number, rows: number): void;
  /** Detaches from the terminal; the agent keeps running. */
  detach(): void;
  /**
   * Settles once, when the session has ended. Rejects with an error thrown by `onOutput` or `onSize`, which
   * also ends the session.
   */
  ended: Promise<TerminalEnd>;
}

interface TerminalControl {
  ack?: number;
  size?: [cols: number, rows: number];
  exit?: { exitCode: number | null; signal: string | null };
}

/** Sends the bearer as a subprotocol, because a browser cannot set a header on a WebSocket. */
const subprotocols = (bearer: string | null): string[] => [
  'berth.v1',
  ...(bearer === null ? [] : [`${TOKEN_PROTOCOL}${base64url(new TextEncoder().encode(bearer))}`]),
];

/** The error of a handshake; `status` 0: there was no answer. */
const refusal = (name: string, status: number, body: string): BerthError =>
  status === 0
    ? new BerthError('unreachable', `the terminal of ${name} cannot be opened`)
    : errorFromAnswer(status, null, body);

const viewingQuery = ({ mode, takeover }: AttachOptions): string => queryString({ mode, takeover });

const isTokenRefused = (error: unknown): boolean =>
  isBerthError(error) && (error.status === 401 || error.code === 'unproven');

/**
 * Opens the terminal of `name`, an agent or a command, by the operation for it. If it is refused for its
 * token, and the settings have another one by now, tries once more with that. Rejects with the daemon's error
 * (`not_running`, `unknown_agent`).
 */
export async function attachTerminal(
  endpoint: Endpoint,
  operation: Operation,
  name: string,
  options: AttachOptions,
): Promise<TerminalSession> {
  const access = await endpoint.access();
  const open = (by: Access | null): Promise<TerminalSession> =>
    openTerminal(endpoint, operation, name, options, by);
  try {
    return await open(access);
  } catch (error) {
    const current = isTokenRefused(error) ? await changedAccess(endpoint, access) : undefined;
    if (current === undefined) throw error;
    return open(current);
  }
}

async function openTerminal(
  endpoint: Endpoint,
  operation: Operation,
  name: string,
  options: AttachOptions,
  access: Access | null,
): Promise<TerminalSession> {
  const { mode, signal } = options;
  const url = endpoint.url() + pathOf(operation, name) + viewingQuery(options);
  const send = (data: string | Uint8Array) => socket?.send(data);
  const input = new InputWindow(send, (bytes) => options.onUnsent?.(bytes));
  let exit: TerminalEnd['exit'] = null;
  let finish: (ended: TerminalEnd) => void = () => {};
  let failed: (error: unknown) => void = () => {};
  const ended = new Promise<TerminalEnd>((resolve, reject) => {
    finish = resolve;
    failed = (error) => {
      reject(error);
      socket?.close();
    };
  });
  // A caller that does not await the end must not get an unhandled rejection.
  ended.catch(() => {});
  let socket: ClientWebSocket | undefined;
  const output = async (bytes: Uint8Array): Promise<void> => {
    await options.onOutput(bytes);
    send(JSON.stringify({ ack: bytes.byteLength }));
  };
  const hear = async (message: string): Promise<void> => {
    const said: TerminalControl = JSON.parse(message);
    input.hear(said.ack);
    if (said.size) options.onSize?.(...said.size);
    if (said.exit) exit = said.exit;
  };
  await new Promise<void>((resolve, reject) => {
    const request = { url, protocols: subprotocols, access, deadlineMs: endpoint.deadlineMs };
    const opening = endpoint.transport.openWebSocket(request, {
      opened: resolve,
      bytes: (bytes) => void output(bytes).catch(failed),
      text: (message) => void hear(message).catch(failed),
      closed: (code, reason) => finish({ exit, code, reason, undelivered: input.close() }),
      refused: (status, body) => reject(refusal(name, status, body)),
    });
    opening.then((made) => {
      socket = made;
    }, reject);
  });
  const detach = (): void => {
    input.close();
    socket?.close();
  };
  if (signal?.aborted) detach();
  signal?.addEventListener('abort', detach, { once: true });
  return {
    write: (keys) => (mode === 'observe' ? undefined : input.write(keys)),
    resize: (cols, rows) => (mode === 'observe' ? undefined : send(JSON.stringify({ resize: [cols, rows] }))),
    detach,
    ended,
  };
}
