// The bytes of a row: a mark, a checksum, and msgpack. A row of a text table is one msgpack string of JSON: a
// start reads hundreds of rows before any code is hot, and JSON.parse is native. Rows of formats 1 and 2 have
// neither mark nor checksum.
import { crc32 } from 'node:zlib';
import { decodeMsgpack, encodeMsgpack } from '../../runtime/msgpack.ts';

/** msgpack never uses this byte, so no row of an earlier format begins with it. */
const MARK = 0xc1;
const PAYLOAD_AT = 5;

/** The bytes of a row; a copy outside the encoder's pool, because lmdb reads it later from another thread. */
export function encodeRow(value: unknown, isText: boolean): Uint8Array {
  const payload = encodeMsgpack(isText ? JSON.stringify(value) : value);
  const bytes = Buffer.allocUnsafeSlow(PAYLOAD_AT + payload.length);
  bytes[0] = MARK;
  bytes.writeUInt32LE(crc32(payload), 1);
  bytes.set(payload, PAYLOAD_AT);
  return bytes;
}

/** The value of a row. Throws an Error when the row is damaged. */
export function decodeRow(bytes: Uint8Array): unknown {
  const row = decodeMsgpack(payloadOf(bytes));
  return typeof row === 'string' ? JSON.parse(row) : row;
}

/** The payload of a row whose checksum fits. */
function payloadOf(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== MARK) return bytes;
  const payload = bytes.subarray(PAYLOAD_AT);
  const sum = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < PAYLOAD_AT || sum.getUint32(1, true) !== crc32(payload))
    throw new Error('its checksum does not fit');
  return payload;
}
