// The kernel's own table of TCP sockets, over netlink (sock_diag(7)): the format of requests and answers.

/** The netlink protocol, and the families of addresses. */
export const NETLINK_SOCK_DIAG = 4;
export const AF_INET = 2;
export const AF_INET6 = 10;
const IPPROTO_TCP = 6;

/** Types of messages: a request or a socket in an answer; an error; the end of an answer. */
export const SOCK_DIAG_BY_FAMILY = 20;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;

/** struct nlmsghdr and struct inet_diag_req_v2. */
export const REQUEST_BYTES = 72;
/** struct nlmsghdr. */
export const NLMSG_HEADER_BYTES = 16;
/** Offset of the type in a header. */
export const TYPE_AT = 4;
/** Offset of the negative errno in an error. */
export const ERRNO_AT = NLMSG_HEADER_BYTES;
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
