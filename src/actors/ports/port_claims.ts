// Which services and leases have which ports.
import type { PortProtocol } from '../../protocol/port_protocol.ts';
import type { PortClaim } from '../../protocol/ports.ts';

/** The owners of each port. Several may claim the same one; they are kept in the order of their claims. */
export class PortClaims {
  private readonly namesByPort = new Map<number, Set<string>>();
  private readonly portByName = new Map<string, number | null>();
  /** Of registered services: other owners have only a lease. */
  private readonly protocolByName = new Map<string, PortProtocol>();
  /** The answers since the last change of a registered service. */
  private readonly jsonByPrefix = new Map<string, string>();

  /** The service `name` is registered; `port` null: it has none. */
  register(name: string, port: number | null, protocol: PortProtocol): void {
    this.claim(name, port);
    this.protocolByName.set(name, protocol);
    this.jsonByPrefix.clear();
  }

  /** `name` has a lease, or another port than it had. */
  claim(name: string, port: number | null): void {
    if (this.portByName.get(name) === port) return;
    if (this.protocolByName.has(name)) this.jsonByPrefix.clear();
    this.releasePort(name);
    this.portByName.set(name, port);
    if (port === null) return;
    this.namesByPort.set(port, (this.namesByPort.get(port) ?? new Set()).add(name));
  }

  release(name: string): void {
    this.releasePort(name);
    if (this.protocolByName.delete(name)) this.jsonByPrefix.clear();
  }

  private releasePort(name: string): void {
    const port = this.portByName.get(name);
    this.portByName.delete(name);
    if (port === undefined || port === null) return;
    const others = this.namesByPort.get(port);
    others?.delete(name);
    if (others?.size === 0) this.namesByPort.delete(port);
  }

  /** Those of registered services, by name, as JSON. */
  jsonWithPrefix(prefix: string): string {
    const known = this.jsonByPrefix.get(prefix);
    if (known !== undefined) return known;
    const found = [...this.protocolByName].filter(([name]) => name.startsWith(prefix));
    found.sort(([a], [b]) => (a < b ? -1 : 1));
    const json = JSON.stringify(
      found.map(
        ([name, protocol]): PortClaim => ({ name, port: this.portByName.get(name) ?? null, protocol }),
      ),
    );
    this.jsonByPrefix.set(prefix, json);
    return json;
  }

  has(name: string): boolean {
    return this.portByName.has(name);
  }

  /** The owners of `port`, without `except`. */
  others(except: string, port: number | null): string[] {
    const names = port === null ? undefined : this.namesByPort.get(port);
    return [...(names ?? [])].filter((name) => name !== except);
  }
}
