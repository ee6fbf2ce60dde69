// The short forms of checks that the command line and the project file accept.
import type { LiveField, ReadyField } from '../protocol/checks.ts';

/**
 * The check to register, once the port is known: `/health` is a path on that port, `tcp` a connection to it.
 * An object is returned unchanged, and so is everything for a service without a port (null): see isOnOwnPort.
 */
export function readyUrl<R extends ReadyField | null>(ready: R, port: number | null): R | string {
  if (port === null || typeof ready !== 'string') return ready;
  if (ready === 'tcp') return `tcp://localhost:${port}`;
  return ready.startsWith('/') ? `http://localhost:${port}${ready}` : ready;
}

/** Whether `ready` is a short form for the service's own port, whose number must be known first. */
export const isOnOwnPort = (ready: ReadyField | null): boolean => readyUrl(ready, 0) !== ready;

/** Whether a check uses the service's own port, in a short form or as an object. */
export function asksOwnPort(check: ReadyField | LiveField | null): boolean {
  if (check === null || typeof check === 'string') return isOnOwnPort(check);
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
