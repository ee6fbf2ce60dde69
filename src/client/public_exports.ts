// The exports of both clients besides `connect`.
export type { AttachOptions, TerminalEnd, TerminalSession } from './attach_terminal.ts';
export type { Client, ClientOptions, CloudClient } from './create_client.ts';
export { BerthError, type ClientErrorCode, type FieldError, isBerthError } from './errors.ts';
export type { StreamOptions } from './event_stream.ts';
export type { EventOptions, HistoryOptions } from './methods/events.ts';
export type {
  LogFollowOptions,
  LogOptions,
  LogSearchOptions,
  LogStreamOptions,
  StreamedLogEntry,
} from './methods/logs.ts';
export type { StartOptions, StopOptions } from './methods/services.ts';
export type * from './records.ts';
