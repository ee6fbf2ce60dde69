// Headers of answers that the gateway changes: docs/reference.md "Gateway".

/**
 * Whether a cookie with the attribute `Domain=<domain>` goes to `hostname` and what is below it, and no
 * further.
 */
function isOwnDomain(domain: string, hostname: string): boolean {
  const name = domain.trim().toLowerCase().replace(/^\./, '');
  return name === hostname.toLowerCase() || name.endsWith(`.${hostname.toLowerCase()}`);
}

/**
 * The value of a Set-Cookie header without a Domain above `hostname`: other agents would get the cookie too.
 */
function ownCookie(value: string, hostname: string): string {
  return value
    .split(';')
    .filter((attribute, index) => {
      const [name = '', ...rest] = attribute.split('=');
      const isDomain = index > 0 && name.trim().toLowerCase() === 'domain';
      return !isDomain || isOwnDomain(rest.join('='), hostname);
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
