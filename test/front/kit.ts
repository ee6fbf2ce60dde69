// Shared by the front's tests: a front on a free port whose owners are stand-ins, and clients that see every
// byte.
import http from 'node:http';
import net from 'node:net';
import { expect } from 'vitest';
import { ErrorBody } from '../../src/api/system_shapes.ts';
import { type CloudFront, createFront, type Front, type FrontOptions } from '../../src/front/front.ts';
import type { ServerKind } from '../../src/front/server/listen.ts';
import { loadUws } from '../../src/front/server/uws_binary.ts';
import { CloudViews } from '../../src/front/views/cloud_views.ts';
import { searchLogs } from '../../src/logs/log_search.ts';
import { readMergedLogs, startMergedLogs } from '../../src/logs/log_stream.ts';
import { ERRORS } from '../../src/protocol/errors.ts';
import type { EventRecord, EventsProtocol } from '../../src/protocol/events.ts';
import type { ServiceState } from '../../src/protocol/service.ts';
import type { SpecRow, ViewsProtocol } from '../../src/protocol/views.ts';
import type { Ref } from '../../src/runtime/actor.ts';
import {
  afterThisTest,
  realTime,
  type Stand,
  settle,
  type TestClock,
  type World,
  world,
} from '../kit/actors.ts';
import { checkAnswer } from '../kit/api_document.ts';
import { type Answer, send } from '../kit/http_request.ts';

/** The servers that load here: the binary of the first does not exist for every Node and libc. */
export const SERVERS: readonly ServerKind[] = uwsLoads() ? ['uWebSockets.js', 'node:http'] : ['node:http'];

function uwsLoads(): boolean {
  try {
    loadUws();
    return true;
  } catch {
    return false;
  }
}

export interface Running extends World {
  front: Front;
  port: number;
  cloudPort: number | null;
  views: Ref<ViewsProtocol>;
  events: Stand<EventsProtocol>;
  defects: unknown[];
  lines: string[];
  /** One request on its own connection. A JSON response must match the shape of its operation. */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** Sends text unchanged and returns everything received until the server closes or `until` has arrived. */
  raw(text: string | Buffer, until?: RegExp): Promise<{ text: string; closed: boolean }>;
}

export interface RequestOptions {
  headers?: Record<string, string>;
  body?: unknown;
  port?: number;
}

export const DAEMON_INFO: FrontOptions['daemonInfo'] = {
  version: '1.2.3',
  pid: 42,
  startedAt: Date.UTC(2030, 0, 1),
  stateDir: '/state',
  gatewayPort: 11612,
  agentDomain: 'agents.localhost',
};

export interface FrontSetup extends Partial<FrontOptions> {
  kept?: EventRecord[];
  lastId?: number;
  completeFrom?: number;
  ready?: boolean;
  clock?: TestClock;
}

/** A cloud part that runs and is empty. */
export const cloudFront = (more: Partial<CloudFront> = {}): CloudFront => ({
  token: 'cloud',
  views: new CloudViews(),
  ensure: async () => {},
  ownListener: null,
  hasRelay: false,
  login: null,
  remote: null,
  ...more,
});

export async function startFront(setup: FrontSetup = {}): Promise<Running> {
  const made = world({ clock: setup.clock ?? realTime });
  const defects: unknown[] = [];
  const lines: string[] = [];
  const { kept = [], lastId = kept.at(-1)?.id ?? 0, completeFrom = 1, ready = true, ...options } = setup;
  const events = await made.stand<EventsProtocol>('events', {
    subscribe: () => ({ kept, lastId, completeFrom }),
  });
  const front = createFront({
    ensureMcp: async () => undefined,
    unreadyReason: () => null,
    readSystem: async () => ({
      threads: [],
      host: null,
      notices: [],
      storeBytes: 0,
      journalBytes: 0,
      rssBytes: 0,
    }),
    bind: '127.0.0.1',
    port: 0,
    token: '',
    allowedExtensions: [],
    allowedOrigins: [],
    daemonInfo: DAEMON_INFO,
    node: made.node,
    cloud: null,
    logJobs: { search: searchLogs, start: startMergedLogs, read: readMergedLogs },
    pageLookup: () => null,
    onRoutesChanged: () => undefined,
    openapi: async () => Buffer.from('{"openapi":"3.1.0"}'),
    log: (line) => lines.push(line),
    onDefect: (error) => defects.push(error),
    ...options,
  });
  const running: Running = {
    ...made,
    front,
    port: 0,
    cloudPort: null,
    views: made.node.ref<ViewsProtocol>('views'),
    events,
    defects,
    lines,
    request: async (method, path, more = {}) => {
      const answer = await send(more.port ?? running.port, method, path, more);
      const isJson = answer.headers['content-type']?.startsWith('application/json');
      // A test may provoke errors that the document does not list.
      if (isJson && answer.status >= 400 && method !== 'HEAD') ErrorBody.parse(answer.body);
      else if (isJson && method !== 'HEAD') checkAnswer(method, path, answer.status, answer.body);
      return answer;
    },
    raw: (text, until) => raw(running.port, text, until),
  };
  await front.start();
  afterThisTest(() => front.close());
  const { port, cloudPort } = await front.listen();
  await front.restoreEvents();
  if (ready) front.setReady(true);
  return Object.assign(running, { port, cloudPort });
}

/** Ends when the server closes, or when the received text matches `until`; then the connection is cut. */
export function raw(
  port: number,
  text: string | Buffer,
  until?: RegExp,
): Promise<{ text: string; closed: boolean }> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    let got = '';
    socket.setEncoding('latin1');
    socket.on('data', (part) => {
      got += part;
      if (until?.test(got)) {
        resolve({ text: got, closed: false });
        socket.destroy();
      }
    });
    // A reset counts as a close: only the text before it matters.
    socket.on('error', () => {});
    socket.on('close', () => resolve({ text: got, closed: true }));
    socket.write(text);
    afterThisTest(() => {
      socket.destroy();
    });
  });
}

export interface SseFrame {
  id: number | null;
  event: string | null;
  data: string | null;
  retry: number | null;
}

export interface SseClient {
  status: number;
  headers: http.IncomingHttpHeaders;
  frames: SseFrame[];
  comments: number;
  /** Resolves after that many frames with data. */
  until(count: number): Promise<SseFrame[]>;
  closed: Promise<void>;
  close(): void;
  response: http.IncomingMessage;
}

/** A client of an event stream that understands every line, and throws on a line it does not know. */
export function sse(port: number, path: string, headers: Record<string, string> = {}): Promise<SseClient> {
  return new Promise((resolve, reject) => {
    const sent = http.get({ host: '127.0.0.1', port, path, agent: false, headers }, (response) => {
      const client: SseClient = {
        status: response.statusCode ?? 0,
        headers: response.headers,
        frames: [],
        comments: 0,
        closed: new Promise((done) => response.on('close', done)),
        close: () => sent.destroy(),
        until: (count) =>
          new Promise((found) => {
            const look = () => {
              const full = client.frames.filter(({ data }) => data !== null);
              if (full.length < count) return;
              response.off('data', look);
              found(full);
            };
            response.on('data', look);
            look();
          }),
        response,
      };
      let rest = '';
      response.setEncoding('utf8');
      response.on('error', () => {});
      response.on('data', (text: string) => {
        const blocks = (rest + text).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          const frame = parseFrame(block);
          if (frame) client.frames.push(frame);
          else client.comments += 1;
        }
      });
      resolve(client);
    });
    sent.on('error', reject);
    afterThisTest(() => {
      sent.destroy();
    });
  });
}

function parseFrame(block: string): SseFrame | null {
  if (block.startsWith(':')) return null;
  const frame: SseFrame = { id: null, event: null, data: null, retry: null };
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^(id|event|data|retry): (.*)$/.exec(line) ?? [];
    if (field === 'id') frame.id = Number(value);
    else if (field === 'retry') frame.retry = Number(value);
    else if (field === 'event' || field === 'data') frame[field] = value;
    else throw new Error(`no line of an event stream: ${line}`);
  }
  return frame;
}

export const specRow = (name: string, more: Partial<SpecRow> = {}): SpecRow => ({
  name,
  port: 3000,
  cmd: 'true',
  cwd: '/home/me',
  group: null,
  ready: null,
  dependsOn: [],
  restart: 'no',
  autostart: false,
  stopSignal: 'SIGTERM',
  stopGrace: 5000,
  kind: 'service',
  inputs: [],
  schedule: null,
  protocol: 'http',
  startTimeout: 30000,
  labels: [],
  agent: null,
  stack: null,
  watch: null,
  sleep: null,
  live: null,
  limits: null,
  envFile: [],
  stop: null,
  revision: 1,
  envKeys: [],
  specHash: 'hash',
  ...more,
});

export const stateRow = (name: string, more: Partial<ServiceState> = {}): ServiceState => ({
  name,
  status: 'stopped',
  restarts: 0,
  process: null,
  end: null,
  isDoorOpen: false,
  ...more,
});

export const runningState = (name: string, pid: number, more: Partial<ServiceState> = {}): ServiceState =>
  stateRow(name, {
    status: 'running',
    process: {
      run: 'r1',
      pid,
      startedAt: Date.UTC(2030, 0, 1),
      port: 3000,
      revision: 1,
      rssMB: 12,
      innerPort: null,
    },
    ...more,
  });

export const eventRecord = (id: number, more: Partial<EventRecord> = {}): EventRecord => ({
  id,
  type: 'service.started',
  name: 'web',
  run: 'r1',
  at: Date.UTC(2030, 0, 1) + id,
  data: `{"name":"web","pid":${id},"url":"http://localhost:3000"}`,
  ...more,
});

/** The origin of an extension. */
export const EXTENSION = 'chrome-extension://abcdefghijklmnop';
/** The smallest registration. */
export const SMALL = { name: 'web', port: 3000, cmd: 'true' };

/** Headers of every JSON response. */
export const SAFE = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

/** An error in the form that every client may rely on. */
export function expectError(answer: Answer, code: keyof typeof ERRORS): void {
  expect([answer.status, answer.body?.code]).toEqual([ERRORS[code].status, code]);
  expect(answer.headers).toMatchObject(SAFE);
  expect(Object.keys(answer.body).slice(0, 3)).toEqual(['code', 'message', 'hint']);
  expect(answer.body.message).not.toBe('');
  expect(answer.body.hint).not.toBe('');
  if (answer.status === 503) expect(answer.headers['retry-after']).toBe('1');
}

/** A front with two services; `web` is running. */
export async function startWithServices(setup: FrontSetup = {}): Promise<Running> {
  const front = await startFront(setup);
  front.views.tell('specs', { rows: [specRow('db'), specRow('web', { group: 'site' })] });
  front.views.tell('states', { rows: [runningState('web', 77)] });
  await settle();
  return front;
}
