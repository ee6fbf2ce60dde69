// SPDY inside a WebSocket, as kubectl uses it since 1.31: for proxies that only support WebSockets, and for
// accounts that may get forwards but not create them. The API server (since 1.30) terminates the WebSocket
// and speaks SPDY to the node. The payloads of the messages form the SPDY stream; message boundaries mean
// nothing.
import { Duplex } from 'node:stream';
import { TETHER } from '../../settings/cloud_limits.ts';
import { type WebSocket, webSocketOver } from '../websocket.ts';
import { spdyDialerWith, upgradeError } from './spdy_dialer.ts';
import { errorLine, type ForwardError } from './transport.ts';

/** The slash violates RFC 6455, so ws would neither request this protocol nor accept it in an answer. */
const TUNNEL_PROTOCOL = 'SPDY/3.1+portforward.k8s.io';
const PROTOCOL_HEADER = 'sec-websocket-protocol';
/** Servers send 32 KiB at most. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** The byte stream in the messages of an open WebSocket. */
class SpdyTunnel extends Duplex {
  private readonly socket: WebSocket;

  constructor(socket: WebSocket) {
    super({ allowHalfOpen: false });
    this.socket = socket;
    // Nothing is read before there is a listener, so that no error is missed.
    socket.pause();
    socket.on('message', (message: Buffer, isBinary) => {
      if (!isBinary) this.destroy(new Error('the server broke the protocol: a text message'));
      else if (!this.push(message)) socket.pause();
    });
    // Pongs must not fill the buffer of a connection that takes nothing.
    socket.on('ping', (payload) => socket.bufferedAmount < TETHER.maxBufferedBytes && socket.pong(payload));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.push(null));
  }

  override _read(): void {
    this.socket.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.socket.send(chunk, done);
  }

  override _writev(parts: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.socket.send(Buffer.concat(parts.map(({ chunk }) => chunk)), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.socket.terminate();
    done(error);
  }
}

/**
 * SPDY in a WebSocket. Servers that do not support it refuse, or select another protocol: both are
 * `unsupported`.
 */
export const dialSpdyTunnel = spdyDialerWith(
  ({ connection, path, headers, signal }) =>
    new Promise((resolve) => {
      const socket = webSocketOver({
        connection,
        path,
        headers: { ...headers, [PROTOCOL_HEADER]: TUNNEL_PROTOCOL },
        protocol: null,
        maxMessageBytes: MAX_MESSAGE_BYTES,
      });
      const settle = (answer: Duplex | ForwardError): void => {
        signal.removeEventListener('abort', stop);
        resolve(answer);
      };
      const stop = (): void => {
        connection.destroy(new Error('the API server does not answer'));
      };
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop);
      let agreed: string | null = null;
      socket.on('upgrade', ({ headers: answer }) => {
        agreed = answer[PROTOCOL_HEADER] ?? 'nothing';
        delete answer[PROTOCOL_HEADER];
      });
      socket.on('open', () => {
        if (agreed === TUNNEL_PROTOCOL) settle(new SpdyTunnel(socket));
        else settle({ code: 'unsupported', text: errorLine(`the API server agreed to ${agreed}`) });
      });
      socket.on('unexpected-response', (_, response) => void upgradeError(response).then(settle));
      socket.on('error', (error) =>
        settle({ code: agreed === null ? 'lost' : 'unsupported', text: errorLine(error.message) }),
      );
    }),
);
