// A terminal of an agent over a WebSocket, docs/reference.md "Attach": binary frames are input and output,
// text frames are control.
import { agents } from '../api/agents.ts';
import { type Endpoint, pathOf } from './api_call.ts';
import { BerthError, errorFromAnswer } from './errors.ts';
import type { ClientWebSocket } from './transport.ts';

export interface AttachOptions {
  /**
   * Output as it comes; the first piece is the screen as it is. Acknowledged when the returned promise
   * resolves.
   */
  onOutput: (bytes: Uint8Array) => void | Promise<void>;
  /** The size of the terminal, at first and whenever some viewer changes it. */
  onSize?: (cols: number, rows: number) => void;
  /** Ends the session; the agent goes on. */
  signal?: AbortSignal;
}

export interface TerminalEnd {
  /** null: the viewer left, or the connection was lost. */
  exit: { exitCode: number | null; signal: string | null } | null;
  /** How the connection ended: 1000 is in order. */
  code: number;
  reason: string;
}

export interface TerminalSession {
  /** Keys typed, as bytes or text. */
  write(input: string | Uint8Array): void;
  resize(cols: number, rows: number): void;
  /** Leaves the terminal; the agent goes on. */
  detach(): void;
  /**
   * Settles once, when the session has ended. Rejects with what `onOutput` or `onSize` has thrown, which ends
   * it too.
   */
  ended: Promise<TerminalEnd>;
}

interface TerminalControl {
  size?: [cols: number, rows: number];
  exit?: { exitCode: number | null; signal: string | null };
}

function base64url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/** The token goes as a subprotocol, because a browser cannot set a header on a WebSocket. */
const subprotocols = (token: string | null): string[] =>
  token ? ['berth.v1', `base64url.bearer.authorization.berth.${base64url(token)}`] : ['berth.v1'];

/**
 * Opens the terminal of the agent `name`. Rejects with the daemon's error (`not_running`, `unknown_agent`).
 */
export async function attachTerminal(
  endpoint: Endpoint,
  name: string,
  options: AttachOptions,
): Promise<TerminalSession> {
  const url = endpoint.url().replace(/^http/, 'ws') + pathOf(agents.attach, name);
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
  // Who does not wait for the end does not want to know how it came.
  ended.catch(() => {});
  const encoder = new TextEncoder();
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
    const opening = endpoint.transport.openWebSocket(url, subprotocols(endpoint.token()), {
      opened: resolve,
      bytes: (bytes) => void output(bytes).catch(failed),
      text: (message) => void hear(message).catch(failed),
      closed: (code, reason) => finish({ exit, code, reason }),
      refused: (status, body) =>
        reject(
          status === 0
            ? new BerthError('unreachable', `the terminal of ${name} cannot be opened`)
            : errorFromAnswer(status, null, body),
        ),
    });
    opening.then((made) => {
      socket = made;
    }, reject);
  });
  await opened;
  const detach = (): void => socket?.close();
  if (options.signal?.aborted) detach();
  options.signal?.addEventListener('abort', detach, { once: true });
  return {
    write: (input) => socket?.send(typeof input === 'string' ? encoder.encode(input) : input),
    resize: (cols, rows) => control({ resize: [cols, rows] }),
    detach,
    ended,
  };
}
