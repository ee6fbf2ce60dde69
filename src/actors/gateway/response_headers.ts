// Headers of answers that the gateway changes: docs/reference.md "Gateway".

/** Whether the attribute `Domain=<domain>` names a host below `hostname`. */
const isBelow = (domain: string, hostname: string): boolean =>
  domain.trim().toLowerCase().replace(/^\./, '').endsWith(`.${hostname.toLowerCase()}`);

/**
 * The value of a Set-Cookie header without a Domain that is `hostname` or above it: other services would get
 * the cookie too, those of the project `shop` are below the service `shop`.
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

/** `headers`, names and values by turns, with the cookies of `hostname` alone. */
export function withOwnCookies(headers: readonly string[], hostname: string): string[] {
  return headers.map((text, index) =>
    headers[index - 1]?.toLowerCase() === 'set-cookie' && index % 2 === 1 ? ownCookie(text, hostname) : text,
  );
}

/**
 * The same for a head in latin1, whose lines are put in one piece first: what is folded would hide a Domain.
 */
export function headWithOwnCookies(head: string, hostname: string): string {
  return head
    .replace(/\r?\n[ \t]+/g, ' ')
    .replace(
      /^(set-cookie[ \t]*:)(.*)$/gim,
      (_, name: string, value: string) => `${name}${ownCookie(value, hostname)}`,
    );
}
