// The format of logs on disk: docs/reference.md "Log files". Each service has a folder,
// `<state>/logs/<name>`, with pairs of files:
//   out.log, out.idx                  the current log, and its index
//   out.<start>.log, out.<start>.idx  a rotated pair; <start> is the logical offset of its first byte
//
// A log holds the bytes exactly as processes wrote them. Logical offsets count every byte ever logged for the
// service: they grow over rotations, runs and hosts.
//
// An index is a sequence of records. A record says that the bytes from `offset` up to the next record, or the
// end of the file, come from `stream` of `run` at `time`. It is written before its bytes; where these never
// arrive, the record describes an empty piece. The first record has stream 0 and says where the log begins.
import { readdirSync } from 'node:fs';

/** 1: stdout or a terminal. 2: stderr. 0: the first record of an index. */
export type LogStream = 0 | 1 | 2;

export interface LogIndexRecord {
  /** Logical offset of its first byte. */
  offset: number;
  stream: LogStream;
  /** Whole epoch milliseconds. */
  time: number;
  /** 16 hexadecimal digits. */
  run: string;
}

/** The files of the current pair. */
export const LOG_FILE = 'out.log';
export const INDEX_FILE = 'out.idx';
/** Size of a record: offset 6, stream 1, unused 1, time 8 (a double), run 8; all big-endian. */
export const RECORD_BYTES = 24;
/** Output of one stream and run shares a record for less than this time, in milliseconds. */
export const MAX_RECORD_SPAN_MS = 10;
/** The run of the first record of an index. */
export const NO_RUN_ID = '0'.repeat(16);

const STREAM_AT = 6;
const TIME_AT = 8;
const RUN_AT = 16;

/** The name of a file of the rotated pair that begins at the logical offset `start`. */
export const rotatedFileName = (start: number, kind: 'log' | 'idx'): string => `out.${start}.${kind}`;

/** The logical offset at which the rotated log `name` begins; null for any other name. */
export function rotatedStart(name: string): number | null {
  const digits = /^out\.(\d{1,15})\.log$/.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** The start offsets of the rotated pairs in `folder`, ascending. Throws when the folder cannot be read. */
export function rotatedStarts(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => rotatedStart(name) ?? [])
    .sort((a, b) => a - b);
}

/**
 * Writes `record` at the beginning of `into`. Throws a RangeError when that is shorter than `RECORD_BYTES`.
 */
export function encodeIndexRecord(record: LogIndexRecord, into: Buffer): void {
  into.fill(0, 0, RECORD_BYTES);
  into.writeUIntBE(record.offset, 0, STREAM_AT);
  into[STREAM_AT] = record.stream;
  into.writeDoubleBE(record.time, TIME_AT);
  into.write(record.run, RUN_AT, 'hex');
}

/** Reads the record at the byte `at` of `from`. Throws a RangeError when fewer than `RECORD_BYTES` follow. */
export function decodeIndexRecord(from: Buffer, at: number): LogIndexRecord {
  const stream = from[at + STREAM_AT];
  return {
    offset: from.readUIntBE(at, STREAM_AT),
    stream: stream === 1 || stream === 2 ? stream : 0,
    time: from.readDoubleBE(at + TIME_AT),
    run: from.toString('hex', at + RUN_AT, at + RECORD_BYTES),
  };
}
