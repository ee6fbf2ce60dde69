// Changes that the gateway makes to headers of answers: docs/reference.md "Gateway".

/** Whether the attribute `Domain=<domain>` names a host below `hostname`. */
const isBelow = (domain: string, hostname: string): boolean =>
  domain.trim().toLowerCase().replace(/^\./, '').endsWith(`.${hostname.toLowerCase()}`);

/**
 * The value of a Set-Cookie header, without a Domain that is `hostname` or above it. Otherwise other services
 * would get the cookie too: the services of the project `shop` are below the service `shop`.
 */
function ownCookie(value: string, hostname: string): string {
  return value
    .split(';')
    .filter((attribute, index) => {
      const [name = '', ...rest] = attribute.split('=');
      const isDomain = index > 0 && name.trim().toLowerCase() === 'domain';
      return !isDomain || isBelow(rest.join('='), hostname);
    })
    .join(';');
}

/** `headers` (names and values alternating), with cookies restricted to `hostname`. */
export function withOwnCookies(headers: readonly string[], hostname: string): string[] {
  return headers.map((text, index) =>
    headers[index - 1]?.toLowerCase() === 'set-cookie' && index % 2 === 1 ? ownCookie(text, hostname) : text,
  );
}

/** The same for a head in latin1. Folded lines are joined first, because folding could hide a Domain. */
export function headWithOwnCookies(head: string, hostname: string): string {
  return head
    .replace(/\r?\n[ \t]+/g, ' ')
    .replace(
      /^(set-cookie[ \t]*:)(.*)$/gim,
      (_, name: string, value: string) => `${name}${ownCookie(value, hostname)}`,
    );
}
