// The kernel's own table of TCP sockets, over netlink (sock_diag(7)): the format of requests and answers.
import { isIPv4 } from 'node:net';

/** The netlink protocol, and the families of addresses. */
export const NETLINK_SOCK_DIAG = 4;
export const AF_INET = 2;
export const AF_INET6 = 10;
const IPPROTO_TCP = 6;

/** Types of messages: a request or a socket in an answer; an error; the end of an answer. */
export const SOCK_DIAG_BY_FAMILY = 20;
const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;

/** struct nlmsghdr and struct inet_diag_req_v2. */
export const REQUEST_BYTES = 72;
/** struct nlmsghdr. */
export const NLMSG_HEADER_BYTES = 16;
/** Offset of the type in a header. */
export const TYPE_AT = 4;
/** Offset of the negative errno in an error. */
const ERRNO_AT = NLMSG_HEADER_BYTES;
/** Offsets in a socket (struct inet_diag_msg). The inode is 0 where no descriptor of the socket is left. */
export const PORT_AT = NLMSG_HEADER_BYTES + 4;
export const ADDRESS_AT = NLMSG_HEADER_BYTES + 8;
export const UID_AT = NLMSG_HEADER_BYTES + 64;
export const INODE_AT = NLMSG_HEADER_BYTES + 68;

/**
 * A request for TCP sockets of `family`. `flags` go in its header; `states` has a bit for each wanted state.
 */
export function tcpRequest(family: number, flags: number, states: number): Buffer {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.writeUInt32LE(REQUEST_BYTES, 0);
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, TYPE_AT);
  request.writeUInt16LE(flags, 6);
  request[NLMSG_HEADER_BYTES] = family;
  request[NLMSG_HEADER_BYTES + 1] = IPPROTO_TCP;
  request.writeUInt32LE(states, 20);
  return request;
}

const NLM_F_REQUEST = 1;
const ANY_VALUE = 0xffffffff;
const ENOENT = 2;
/** Offsets of the two ends and of the cookie in a request. */
const SOURCE_PORT_AT = 24;
const TARGET_PORT_AT = 26;
const SOURCE_ADDRESS_AT = 28;
const TARGET_ADDRESS_AT = 44;
const COOKIE_AT = 64;

/** One end of a connection on loopback. */
export interface LoopbackEnd {
  /** An address of 127.0.0.0/8, or ::1. */
  address: string;
  port: number;
}

function loopbackBytes(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  if (isIPv4(address)) for (const [index, part] of address.split('.').entries()) bytes[index] = Number(part);
  else bytes[15] = 1;
  return bytes;
}

/**
 * A request for the single socket that receives what `target` sends to `source`: their connection, or else
 * the listener that would accept it.
 */
export function socketRequest(source: LoopbackEnd, target: LoopbackEnd): Buffer {
  const request = tcpRequest(isIPv4(source.address) ? AF_INET : AF_INET6, NLM_F_REQUEST, ANY_VALUE);
  request.writeUInt16BE(source.port, SOURCE_PORT_AT);
  request.writeUInt16BE(target.port, TARGET_PORT_AT);
  loopbackBytes(source.address).copy(request, SOURCE_ADDRESS_AT);
  loopbackBytes(target.address).copy(request, TARGET_ADDRESS_AT);
  request.writeUInt32LE(ANY_VALUE, COOKIE_AT);
  request.writeUInt32LE(ANY_VALUE, COOKIE_AT + 4);
  return request;
}

/**
 * The socket in the kernel's answer to `socketRequest`; null: there is none; undefined: the answer does not
 * say.
 */
export function socketIn(answer: Buffer): { uid: number; inode: number } | null | undefined {
  if (answer.length < ERRNO_AT + 4) return undefined;
  if (answer.readUInt16LE(TYPE_AT) === NLMSG_ERROR)
    return answer.readInt32LE(ERRNO_AT) === -ENOENT ? null : undefined;
  if (answer.length < INODE_AT + 4) return undefined;
  return { uid: answer.readUInt32LE(UID_AT), inode: answer.readUInt32LE(INODE_AT) };
}
