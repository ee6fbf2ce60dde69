// The short forms of checks that the command line and the project file accept.
import type { LiveField, ReadyField } from '../protocol/checks.ts';

/**
 * The check that is registered, once the port is known: `/health` is a path on that port, `tcp` a connection
 * to it. An object stays as it is. A service without a port (null) has neither: isOnOwnPort tells.
 */
export function readyUrl<R extends ReadyField | null>(ready: R, port: number | null): R | string {
  if (port === null || typeof ready !== 'string') return ready;
  if (ready === 'tcp') return `tcp://localhost:${port}`;
  return ready.startsWith('/') ? `http://localhost:${port}${ready}` : ready;
}

/** Whether `ready` is a short form for its own port, whatever that is: its number must be known first. */
export const isOnOwnPort = (ready: ReadyField | null): boolean => readyUrl(ready, 0) !== ready;

/** Whether a check asks the service's own port, in a short form or as an object. */
export function asksOwnPort(check: ReadyField | LiveField | null): boolean {
  if (check === null || typeof check === 'string') return isOnOwnPort(check);
  return 'http' in check ? check.http.startsWith('/') : 'tcp' in check && check.tcp === true;
}

/**
 * `check` of a service whose port `port` is replaced by another: an address of this machine with that number
 * means the one in its place.
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
