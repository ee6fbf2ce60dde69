// The short forms of checks that the command line and the project file accept.
import type { LiveField, ReadyField } from '../protocol/checks.ts';

/**
 * The check to register for the text of a check. `/health` is a path on the service's own port, and `tcp` a
 * connection to it. Both become objects, which do not name the port: it may be assigned at the registration.
 */
export function checkFromText(text: string): ReadyField {
  if (text === 'tcp') return { tcp: true };
  return text.startsWith('/') ? { http: text } : text;
}

/** Whether a check uses the service's own port. */
export function probesOwnPort(check: LiveField | null): boolean {
  if (check === null || typeof check === 'string') return false;
  return 'http' in check ? check.http.startsWith('/') : 'tcp' in check && check.tcp === true;
}

/**
 * `check` for a service whose port `port` is replaced by another: an address of this machine with that number
 * refers to the replacement.
 */
export function onOtherPort(check: LiveField, port: number, name: string): LiveField {
  const own = new RegExp(`^((?:(?:https?|tcp)://)?(?:localhost|127\\.0\\.0\\.1|\\[::1\\])):${port}(?![0-9])`);
  const moved = (text: string): string => text.replace(own, `$1:\${port.${name}}`);
  if (typeof check === 'string') return moved(check);
  if ('http' in check) return { ...check, http: moved(check.http) };
  if (!('tcp' in check)) return check;
  if (check.tcp === port) return { ...check, tcp: true };
  return typeof check.tcp === 'string' ? { ...check, tcp: moved(check.tcp) } : check;
}
