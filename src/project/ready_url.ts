// The short forms of a ready-check that the command line and the project file accept.

/**
 * The URL that the daemon checks, once the port is known: `/health` is a path on that port, `tcp` a
 * connection to it. A service without a port (null) has neither: isOnOwnPort tells.
 */
export function readyUrl(ready: string | null, port: number | null): string | null {
  if (port === null) return ready;
  if (ready === 'tcp') return `tcp://localhost:${port}`;
  return ready?.startsWith('/') ? `http://localhost:${port}${ready}` : ready;
}

/** Whether `ready` asks the service's own port, whatever that is. */
export const isOnOwnPort = (ready: string | null): boolean => readyUrl(ready, 0) !== ready;
