// A terminal of an agent over a WebSocket, docs/reference.md "Attach": binary frames are input and output,
// text frames are control.
import type { Operation } from '../api/operation.ts';
import { TOKEN_PROTOCOL } from '../protocol/access_key.ts';
import { changedAccess, type Endpoint, pathOf, queryString } from './api_call.ts';
import { base64url } from './base64url.ts';
import { BerthError, errorFromAnswer, isBerthError } from './errors.ts';
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
  /** Ends the session; the agent keeps running. */
  signal?: AbortSignal;
}

export interface TerminalEnd {
  /** null: the viewer detached, or the connection was lost. */
  exit: { exitCode: number | null; signal: string | null } | null;
  /** The close code of the connection; 1000 is normal, 4001 means that another viewer has taken over. */
  code: number;
  reason: string;
}

export interface TerminalSession {
  /**
   * Sends keys, as bytes or text. The session ends with code 1008 when more than 1 MiB waits for the program
   * to read it.
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
  size?: [cols: number, rows: number];
  exit?: { exitCode: number | null; signal: string | null };
}

/** The most input in one message. A server refuses messages above a limit of its own. */
const MAX_INPUT_BYTES = 64 * 1024;

function partsOf(input: string | Uint8Array): Uint8Array[] {
  const bytes = typeof input === 'string' ? new TextEncoder().encode(input) : input;
  return Array.from({ length: Math.ceil(bytes.length / MAX_INPUT_BYTES) }, (_, index) =>
    bytes.subarray(index * MAX_INPUT_BYTES, (index + 1) * MAX_INPUT_BYTES),
  );
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
  const type = (data: string | Uint8Array) => (mode === 'observe' ? undefined : socket?.send(data));
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
  const control = (message: object): void => socket?.send(JSON.stringify(message));
  const output = async (bytes: Uint8Array): Promise<void> => {
    await options.onOutput(bytes);
    control({ ack: bytes.byteLength });
  };
  const hear = async (message: string): Promise<void> => {
    const said: TerminalControl = JSON.parse(message);
    if (said.size) options.onSize?.(...said.size);
    if (said.exit) exit = said.exit;
  };
  const opened = new Promise<void>((resolve, reject) => {
    const { deadlineMs } = endpoint;
    const request = { url, protocols: subprotocols, access, deadlineMs };
    const opening = endpoint.transport.openWebSocket(request, {
      opened: resolve,
      bytes: (bytes) => void output(bytes).catch(failed),
      text: (message) => void hear(message).catch(failed),
      closed: (code, reason) => finish({ exit, code, reason }),
      refused: (status, body) => reject(refusal(name, status, body)),
    });
    opening.then((made) => {
      socket = made;
    }, reject);
  });
  await opened;
  const detach = (): void => socket?.close();
  if (signal?.aborted) detach();
  signal?.addEventListener('abort', detach, { once: true });
  return {
    write: (input) => {
      for (const part of partsOf(input)) type(part);
    },
    resize: (cols, rows) => type(JSON.stringify({ resize: [cols, rows] })),
    detach,
    ended,
  };
}
