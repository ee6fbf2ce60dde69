// Converts values to bytes and back. The only file that knows msgpackr. Objects are written as plain maps (no
// records), so that every message is self-contained, and a key `__proto__` is decoded as the harmless
// `__proto_`.
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false });

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
