// What both clients give besides their `connect`.
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
export type * from './records.ts';
export type { StreamOptions } from './sse.ts';
