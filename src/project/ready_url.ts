// The short forms of a ready-check that the command line and the project file accept.

/**
 * The URL that the daemon checks, once the port is known: `/health` is a path on that port, `tcp` a
 * connection to it.
 */
export function readyUrl(ready: string | null, port: number): string | null {
  if (ready === 'tcp') return `tcp://localhost:${port}`;
  return ready?.startsWith('/') ? `http://localhost:${port}${ready}` : ready;
}
