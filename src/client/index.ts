// The client for Node: `import { connectLocal } from 'berth/client'`.
import { type Client, type ClientOptions, createClient } from './connect.ts';
import { nodeTransport } from './node.ts';

/** A client of the daemon at `options.url`. */
export const connect = (options: ClientOptions): Client => createClient(nodeTransport, options);

export type { AttachOptions, Ended, Terminal } from './attach.ts';
export type {
  EventOptions,
  FollowOptions,
  HistoryOptions,
  LogOptions,
  StartOptions,
  StopOptions,
} from './client.ts';
export type { Client, ClientOptions } from './connect.ts';
export { BerthError, type ClientCode, type FieldError, isBerthError } from './errors.ts';
export { connectLocal, type LocalOptions } from './local.ts';
export type * from './records.ts';
export type { StreamOptions } from './sse.ts';
