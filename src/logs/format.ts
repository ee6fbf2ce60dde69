// How logs lie on disk: docs/reference.md "Log files". A service has one folder, `<state>/logs/<name>`:
//   out.log                raw bytes as the processes wrote them;  out.idx   which of them came when, from where
//   out.<start>.log, .idx  the same, rotated; <start> is the logical offset of its first byte
// Logical offsets count every byte ever logged for the service: they grow over rotations, runs and hosts.
// A record says that the bytes from `offset` on, up to the next record or the end of the file, came from `stream` of `run`
// at `time`. It is written before its bytes: one whose bytes never came is an empty piece and harms nobody.
// The first record of an index has stream 0 and says where its file begins.

/** 1: stdout or a terminal; 2: stderr; 0: the head of an index. */
export type LogStream = 0 | 1 | 2;

export interface LogIndexRecord {
  /** Logical. */
  offset: number;
  stream: LogStream;
  /** Epoch milliseconds, a whole number. */
  time: number;
  /** 16 hexadecimal digits. */
  run: string;
}

export const LOG_FILE = 'out.log';
export const INDEX_FILE = 'out.idx';
/** Bytes of a record: offset 6, stream 1, spare 1, time 8 (a double), run 8; all big-endian. */
export const RECORD_BYTES = 24;
/** Output of the same stream and run within this many milliseconds shares a record. */
export const MAX_RECORD_SPAN_MS = 10;
export const NO_RUN_ID = '0'.repeat(16);

const STREAM_AT = 6;
const TIME_AT = 8;
const RUN_AT = 16;

/** The name of one file of the rotated pair that begins at the logical offset `start`. */
export const rotatedFileName = (start: number, kind: 'log' | 'idx'): string => `out.${start}.${kind}`;

/** The logical offset where the rotated log of this name begins; null for a name that is none. */
export function rotatedStart(name: string): number | null {
  const digits = /^out\.(\d{1,15})\.log$/.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** Writes `record` to the beginning of `into`. Throws a RangeError when that has less than `RECORD_BYTES`. */
export function encodeIndexRecord(record: LogIndexRecord, into: Buffer): void {
  into.fill(0, 0, RECORD_BYTES);
  into.writeUIntBE(record.offset, 0, STREAM_AT);
  into[STREAM_AT] = record.stream;
  into.writeDoubleBE(record.time, TIME_AT);
  into.write(record.run, RUN_AT, 'hex');
}

/** The record at the byte `at` of `from`, which has at least `RECORD_BYTES` from there on. */
export function decodeIndexRecord(from: Buffer, at: number): LogIndexRecord {
  const stream = from[at + STREAM_AT];
  return {
    offset: from.readUIntBE(at, STREAM_AT),
    stream: stream === 1 || stream === 2 ? stream : 0,
    time: from.readDoubleBE(at + TIME_AT),
    run: from.toString('hex', at + RUN_AT, at + RECORD_BYTES),
  };
}
