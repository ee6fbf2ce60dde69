// What both clients give besides their `connect`.
export type { AttachOptions, TerminalEnd, TerminalSession } from './attach.ts';
export type {
  EventOptions,
  HistoryOptions,
  LogFollowOptions,
  LogOptions,
  StartOptions,
  StopOptions,
} from './client.ts';
export type { Client, ClientOptions } from './connect.ts';
export { BerthError, type ClientErrorCode, type FieldError, isBerthError } from './errors.ts';
export type * from './records.ts';
export type { StreamOptions } from './sse.ts';
