// Calls the API of this daemon from the MCP thread, with the token of the caller: the calls have the caller's
// rights and no more.
import type { Socket } from 'node:net';
import { type Client, createClient } from '../client/create_client.ts';
import { BerthError } from '../client/errors.ts';
import { nodeTransport } from '../client/node_transport.ts';
import { connectTo, requestOn, toHttpAnswer } from '../client/socket_request.ts';
import type { HttpAnswer, HttpRequest, Transport } from '../client/transport.ts';
import { MCP } from '../settings/mcp_limits.ts';

type Header = readonly [name: string, value: string];

/** Carries the token for /k8s where `Authorization` has another one. */
const CLOUD_TOKEN_HEADER = 'berth-cloud-token';

const isCloudUrl = (url: string): boolean => new URL(url).pathname.startsWith('/k8s/');

/** Reads share a few connections: opening one takes longer than a read. */
export class CallerConnections {
  /** Idle connections, by their server. */
  private readonly idle = new Map<string, Socket[]>();
  /** Clients of recent callers: creating a client takes longer than a call. */
  private readonly clients = new Map<string, Client>();

  /** A client that sends the credentials of the caller's request in place of a token of its own. */
  clientOf(headers: ReadonlyMap<string, string>, url: string, cloudUrl: string): Client {
    const authorization = headers.get('authorization');
    const token = headers.get(CLOUD_TOKEN_HEADER);
    const key = JSON.stringify([authorization, token, url, cloudUrl]);
    const known = this.clients.get(key) ?? this.createClient(authorization, token, url, cloudUrl);
    // The client used last is the last to be dropped.
    this.clients.delete(key);
    this.clients.set(key, known);
    const [oldest] = this.clients.keys();
    if (oldest !== undefined && this.clients.size > MCP.maxKeptCallers) this.clients.delete(oldest);
    return known;
  }

  private createClient(
    authorization: string | undefined,
    token: string | undefined,
    url: string,
    cloudUrl: string,
  ): Client {
    const shown = (value: string | undefined): Header[] =>
      value === undefined ? [] : [['Authorization', value]];
    const given = shown(authorization);
    const cloud = token === undefined ? given : shown(`Bearer ${token}`);
    const transport: Transport = {
      ...nodeTransport,
      request: (request) => {
        const access = isCloudUrl(request.url) ? cloud : given;
        return this.send({ ...request, access: null, headers: [...request.headers, ...access] });
      },
    };
    return createClient(transport, { url, cloudUrl, deadlineMs: Number.POSITIVE_INFINITY });
  }

  close(): void {
    for (const sockets of this.idle.values()) for (const socket of sockets) socket.destroy();
    this.idle.clear();
  }

  /** Names and searches are part of the URL, and servers reject long URLs without an explanation. */
  private async send(request: HttpRequest): Promise<HttpAnswer> {
    if (request.url.length > MCP.maxUrlLength) {
      const message = `the input is too long: names and searches have ${MCP.maxUrlLength} characters at most`;
      throw new BerthError('invalid_spec', message, { status: 400, hint: 'Ask for less at once.' });
    }
    const isRead = request.isBuffered && request.method === 'GET' && request.url.startsWith('http:');
    return isRead ? this.read(request) : nodeTransport.request(request);
  }

  /** An idle connection may turn out closed at its next use; the read is then repeated on a new one. */
  private async read(request: HttpRequest): Promise<HttpAnswer> {
    const url = new URL(request.url);
    const socket = this.idle.get(url.origin)?.pop() ?? connectTo(url);
    try {
      return await this.readOn(url.origin, socket, request);
    } catch (error) {
      if (request.signal?.aborted) throw error;
      return nodeTransport.request(request);
    }
  }

  private async readOn(origin: string, socket: Socket, request: HttpRequest): Promise<HttpAnswer> {
    try {
      const answer = await requestOn(socket, { ...request, isKept: true });
      if (answer.headers.get('connection')?.toLowerCase() === 'close') socket.destroy();
      else this.keep(origin, socket);
      return toHttpAnswer(answer);
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  private keep(origin: string, socket: Socket): void {
    const idle = this.idle.get(origin) ?? [];
    this.idle.set(origin, idle);
    if (idle.length >= MCP.maxIdleConnections || socket.destroyed) {
      socket.destroy();
      return;
    }
    if (socket.listenerCount('end') === 0) {
      const forget = (): void => {
        const at = idle.indexOf(socket);
        if (at >= 0) idle.splice(at, 1);
        socket.destroy();
      };
      socket.on('error', forget).on('end', forget).on('close', forget);
      // An idle connection receives no response, so it must not keep the process alive.
      socket.unref();
    }
    idle.push(socket);
  }
}
