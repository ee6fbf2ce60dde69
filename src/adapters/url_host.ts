// Addresses in URLs, where IPv6 stands in brackets, as it does nowhere else.

/** The host of a URL as it is dialled and looked up. */
export const unbracketedHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** A name or an address as a URL has it. */
export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Whether who listens on it listens on every address of its family. */
export const isWildcard = (bind: string): boolean => /^[0:.]+$/.test(bind);

/** The address at which this machine reaches who listens on `bind`: nobody is at a wildcard, nor is that a Host of the daemon's. */
export function dialAddress(bind: string): string {
  if (!isWildcard(bind)) return bind;
  return bind.includes(':') ? '::1' : '127.0.0.1';
}

/** The URL, without a slash at its end, of who listens on `bind` and `port` of this machine. */
export const localUrl = (bind: string, port: number, scheme: 'http' | 'https' = 'http'): string =>
  `${scheme}://${hostInUrl(dialAddress(bind))}:${port}`;
