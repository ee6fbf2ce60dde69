// The table of host names.
import type { GatewayRoute } from '../../protocol/gateway.ts';

/** Whether the service can be reached: it is running, or a request wakes it. */
export const isReachable = ({ pid, isAsleep, isDoorOpen }: GatewayRoute): boolean =>
  pid !== null || isDoorOpen || isAsleep;

/** The rows by host name, in lower case. Names that differ only in `_` and `-` share a host name. */
export function routesByHostname(rows: readonly GatewayRoute[]): Map<string, GatewayRoute[]> {
  const byHostname = new Map<string, GatewayRoute[]>();
  for (const row of rows) {
    const hostname = row.hostname.toLowerCase();
    const others = byHostname.get(hostname);
    if (others) others.push(row);
    else byHostname.set(hostname, [row]);
  }
  return byHostname;
}
