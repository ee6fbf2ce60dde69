// Bytes and back: the only place that knows msgpackr. Objects are written as plain maps (no records), so that
// every message stands for itself and a key `__proto__` comes back as the harmless `__proto_`.
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false });

/**
 * Plain data (null, booleans, numbers, strings, arrays, plain objects, Uint8Array) as msgpack. The result is
 * a view into a shared pool: copy it before you transfer or keep it. Throws for what is no data: a symbol, a
 * cycle.
 */
export const encodeMsgpack = (value: unknown): Uint8Array => packr.pack(value);

/**
 * The one value in `bytes`. Byte strings in it are views into `bytes`. Throws for anything but one whole
 * value.
 */
export const decodeMsgpack = (bytes: Uint8Array): unknown => packr.unpack(bytes);

/** All values that lie one after the other in `bytes`. Throws when the last one is not whole. */
export const decodeAllMsgpack = (bytes: Uint8Array): unknown[] => packr.unpackMultiple(bytes) ?? [];
