// What both clients give besides their `connect`.
export type { AttachOptions, TerminalEnd, TerminalSession } from './attach_terminal.ts';
export type { Client, ClientOptions } from './create_client.ts';
export type {
  EventOptions,
  HistoryOptions,
  LogFollowOptions,
  LogOptions,
  StartOptions,
  StopOptions,
} from './daemon_methods.ts';
export { BerthError, type ClientErrorCode, type FieldError, isBerthError } from './errors.ts';
export type { StreamOptions } from './event_stream.ts';
export type * from './records.ts';
