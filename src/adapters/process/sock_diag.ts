// The kernel's own table of TCP sockets (sock_diag(7), over netlink): what a request says, and where an answer has what.

export const NETLINK_SOCK_DIAG = 4;
export const AF_INET = 2;
export const AF_INET6 = 10;
const IPPROTO_TCP = 6;

/** Types of messages: a request, each socket of an answer; an answer that is an error; the end of a dump. */
export const SOCK_DIAG_BY_FAMILY = 20;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;

/** struct nlmsghdr and struct inet_diag_req_v2. */
export const REQUEST_BYTES = 72;
/** struct nlmsghdr. */
export const NLMSG_HEADER_BYTES = 16;
/** Where the header has the type of a message. */
export const TYPE_AT = 4;
/** Behind the header of an error: its errno, negative. */
export const ERRNO_AT = NLMSG_HEADER_BYTES;
/** Behind the header of a socket, in struct inet_diag_msg; the inode is 0 when no descriptor of the socket is left. */
export const PORT_AT = NLMSG_HEADER_BYTES + 4;
export const ADDRESS_AT = NLMSG_HEADER_BYTES + 8;
export const UID_AT = NLMSG_HEADER_BYTES + 64;
export const INODE_AT = NLMSG_HEADER_BYTES + 68;

/** A request for TCP sockets of `family`: `flags` are those of its header, `states` has a bit for each wanted state. */
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
