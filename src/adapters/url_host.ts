// Hosts in URLs, where an IPv6 address needs brackets.

/** The host of a URL in the form for sockets and resolvers. */
export const unbracketedHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** A name or an address as the host of a URL. */
export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** A server address as people write it, possibly without `http://`. */
export const withScheme = (address: string): string =>
  /^[a-z]+:\/\//i.test(address) ? address : `http://${address}`;

/** Whether `bind` means every address of its family. */
export const isWildcard = (bind: string): boolean => /^[0:.]+$/.test(bind);

/**
 * The address at which this machine reaches a listener on `bind`: a wildcard cannot be dialled, and is not a
 * Host the daemon accepts.
 */
export function dialAddress(bind: string): string {
  if (!isWildcard(bind)) return bind;
  return bind.includes(':') ? '::1' : '127.0.0.1';
}

/** The URL, without a slash at the end, of a listener on `bind` and `port` of this machine. */
export const localUrl = (bind: string, port: number, scheme: 'http' | 'https' = 'http'): string =>
  `${scheme}://${hostInUrl(dialAddress(bind))}:${port}`;
