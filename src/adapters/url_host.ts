// An IPv6 address stands in brackets in a URL, and nowhere else.

/** The host of a URL as it is dialled and looked up. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** A name or an address as a URL has it. */
export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);
