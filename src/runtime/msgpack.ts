// Converts values to bytes and back. The only file that knows msgpackr. Objects are written as plain maps; in
// rows, the keys of all objects are named once. Every message is self-contained either way, and a key
// `__proto__` is decoded as the harmless `__proto_`.
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false });
const rowPackr = new Packr({ useRecords: true });

/**
 * Plain data (null, booleans, numbers, strings, arrays, plain objects, Uint8Array) as msgpack. The result is
 * a view into a shared pool: copy it before transferring or keeping it. Throws for other values, such as a
 * symbol or a cycle.
 */
export const encodeMsgpack = (value: unknown): Uint8Array => packr.pack(value);

/**
 * The one value in `bytes`. Byte strings in it are views into `bytes`. Throws for anything but one whole
 * value.
 */
export const decodeMsgpack = (bytes: Uint8Array): unknown => packr.unpack(bytes);

/** All consecutive values in `bytes`. Throws when the last one is incomplete. */
export const decodeAllMsgpack = (bytes: Uint8Array): unknown[] => packr.unpackMultiple(bytes) ?? [];

declare const packed: unique symbol;
/** Objects of type `Row`, as bytes. */
export type PackedRows<Row> = Uint8Array & { readonly [packed]: Row };

/**
 * Objects with the same keys, smaller and faster to decode than as maps; a view, as from `encodeMsgpack`.
 * Meant for many rows at once: a single one is no smaller.
 */
export const packRows = <Row extends object>(rows: readonly Row[]): PackedRows<Row> =>
  rowPackr.pack(rows) as Uint8Array as PackedRows<Row>;

/** The objects that `packRows` was given. */
export const unpackRows = <Row extends object>(rows: PackedRows<Row>): Row[] => rowPackr.unpack(rows);
