// What each host name leads to.
import type { GatewayRoute } from '../../protocol/gateway.ts';

/** Whether the service can be asked: it runs, or is woken. */
export const isReachable = ({ pid, isAsleep, isDoorOpen }: GatewayRoute): boolean =>
  pid !== null || isDoorOpen || isAsleep;

/** The rows by host name, lower case. Several have one name where they differ only in `_` and `-`. */
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
