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
//
// A run is marked by two records without bytes, of the streams `MARK_*`: one with the run, then
// one with the pid and how the run ended in place of the run. Readers of earlier versions take them for empty
// pieces.
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';

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
  /** Its bytes continue a line of the same stream and run, after other output in between. */
  continues?: boolean;
}

/** The start or the end of a run. */
export interface LogRunMark {
  event: 'started' | 'ended';
  /** Epoch milliseconds. */
  time: number;
  run: string;
  pid: number | null;
  /** For an end; null for a start, if a signal ended the run, and if nobody saw the end. */
  exitCode: number | null;
  signal: string | null;
}

/** The files of the current pair. */
export const LOG_FILE = 'out.log';
export const INDEX_FILE = 'out.idx';
/** Size of a record: offset 6, stream 1, continues 1, time 8 (a double), run 8; all big-endian. */
export const RECORD_BYTES = 24;
/** Output of one stream and run shares a record for less than this time, in milliseconds. */
export const MAX_RECORD_SPAN_MS = 10;
/** The streams of the records of a mark. */
const MARK_STARTED = 3;
const MARK_ENDED = 4;
const MARK_DETAIL = 5;
/** Placeholder for the run in the first record of an index. */
export const NO_RUN_ID = '0'.repeat(16);

const STREAM_AT = 6;
const CONTINUES_AT = 7;
const TIME_AT = 8;
const RUN_AT = 16;
/** In the second record of a mark, in place of the run: the pid, then the outcome. */
const PID_AT = RUN_AT;
const OUTCOME_AT = RUN_AT + 4;
/** An outcome is an exit code, or this plus the number of a signal, or `NO_OUTCOME`. */
const SIGNAL_BASE = 0x1000;
const NO_OUTCOME = -1;

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
  into[CONTINUES_AT] = record.continues ? 1 : 0;
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
    continues: from[at + CONTINUES_AT] === 1,
  };
}

/** The two records of a mark at the logical `offset`. */
export function encodeRunMark(mark: LogRunMark, offset: number): Buffer {
  const { event, time, run, pid, exitCode, signal } = mark;
  const records = Buffer.alloc(2 * RECORD_BYTES);
  encodeIndexRecord({ offset, stream: 0, time, run }, records);
  records[STREAM_AT] = event === 'started' ? MARK_STARTED : MARK_ENDED;
  const detail = records.subarray(RECORD_BYTES);
  encodeIndexRecord({ offset, stream: 0, time, run: NO_RUN_ID }, detail);
  detail[STREAM_AT] = MARK_DETAIL;
  detail.writeInt32BE(pid ?? 0, PID_AT);
  detail.writeInt32BE(signal === null ? (exitCode ?? NO_OUTCOME) : signalOutcome(signal), OUTCOME_AT);
  return records;
}

function signalOutcome(name: string): number {
  const number = Object.entries(constants.signals).find(([known]) => known === name)?.[1];
  return number === undefined ? NO_OUTCOME : SIGNAL_BASE + number;
}

const signalName = (number: number): string | null =>
  Object.entries(constants.signals).find(([, known]) => known === number)?.[0] ?? null;

/** The stream of the record at the byte `at`, one of `MARK_*` included. */
const recordStream = (from: Buffer, at: number): number => from[at + STREAM_AT] ?? 0;

/** Whether the records at two bytes are of the same stream and run. */
export const isSameOutput = (from: Buffer, one: number, other: number): boolean =>
  from[one + STREAM_AT] === from[other + STREAM_AT] &&
  from.compare(from, one + RUN_AT, one + RECORD_BYTES, other + RUN_AT, other + RECORD_BYTES) === 0;

/**
 * The mark whose first record is at the byte `at`; null for any other record. After a kill its second record
 * may be missing.
 */
export function decodeRunMark(from: Buffer, at: number): LogRunMark | null {
  const stream = recordStream(from, at);
  if (stream !== MARK_STARTED && stream !== MARK_ENDED) return null;
  const { time, run } = decodeIndexRecord(from, at);
  const event = stream === MARK_STARTED ? 'started' : 'ended';
  const next = at + RECORD_BYTES;
  if (next + RECORD_BYTES > from.length || recordStream(from, next) !== MARK_DETAIL)
    return { event, time, run, pid: null, exitCode: null, signal: null };
  const pid = from.readInt32BE(next + PID_AT) || null;
  const outcome = from.readInt32BE(next + OUTCOME_AT);
  const isSignal = outcome >= SIGNAL_BASE;
  const exitCode = isSignal || outcome === NO_OUTCOME ? null : outcome;
  return { event, time, run, pid, exitCode, signal: isSignal ? signalName(outcome - SIGNAL_BASE) : null };
}
