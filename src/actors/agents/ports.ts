// State: who has registered which port. Rebuilt from: the store; a lease whose registration never came is forgotten.
import { openListenerTable } from '../../adapters/process/listener_table.ts';
import type { Listener } from '../../adapters/process/listeners.ts';
import type { Store } from '../../adapters/storage/store.ts';
import { SERVICE } from '../../limits.ts';
import { fail } from '../../protocol/errors.ts';
import type { HostProtocol } from '../../protocol/host.ts';
import type { PortsProtocol } from '../../protocol/ports.ts';
import { actor } from '../../runtime/actor.ts';
import { holderOn, type Mark } from './port_holder.ts';

export interface PortsConfig {
  store: Pick<Store, 'table'>;
}

/** Which owner has which port; several may have the same one, in the order in which they came. */
class Claims {
  private readonly owners = new Map<number, Set<string>>();
  private readonly ports = new Map<string, number>();

  set(owner: string, port: number): void {
    if (this.ports.get(owner) === port) return;
    this.drop(owner);
    this.ports.set(owner, port);
    this.owners.set(port, (this.owners.get(port) ?? new Set()).add(owner));
  }

  drop(owner: string): void {
    const port = this.ports.get(owner);
    if (port === undefined) return;
    this.ports.delete(owner);
    const others = this.owners.get(port);
    others?.delete(owner);
    if (others?.size === 0) this.owners.delete(port);
  }

  has(owner: string): boolean {
    return this.ports.has(owner);
  }

  /** Who has `port` besides `owner`. */
  others(owner: string, port: number): string[] {
    return [...(this.owners.get(port) ?? [])].filter((name) => name !== owner);
  }
}

/** The listening sockets, read at most once per turn: a hundred services that start at once ask for the same table. */
function oncePerTurn(read: () => Listener[]): () => Listener[] {
  let table: Listener[] | undefined;
  return () => {
    if (!table) {
      table = read();
      setImmediate(() => {
        table = undefined;
      });
    }
    return table;
  };
}

/** Who claims which port, and who listens on it. */
export const ports = actor<PortsProtocol, PortsConfig>('ports', (context, { store }) => {
  const claims = new Claims();
  for (const [name, { spec }] of store.table('services').all()) claims.set(name, spec.port);
  const listening = openListenerTable();
  context.scope.defer(listening.close);
  const table = oncePerTurn(listening.rows);

  /** Another daemon may have a service of the same name: what is ours is the last run that has ended, and the one the host has. */
  const isOurs = async ({ service, run }: Mark): Promise<boolean> => {
    if (!claims.has(service)) return false;
    if (store.table('ends').get(service)?.run === run) return true;
    const asked = context.ref<HostProtocol>('host').ask('runOf', { service }, { deadlineMs: SERVICE.lookMs });
    // Where the host does not say so at once the pid is told, which is as true.
    return (await asked.catch(() => null))?.run?.run === run;
  };

  const holder = async (port: number): Promise<{ pid: number | null; holder: string } | null> => {
    const found = holderOn(port, table());
    if (!found) return null;
    const { pid, holder: shown, mark } = found;
    return { pid, holder: mark && (await isOurs(mark)) ? mark.service : shown };
  };

  /** Why `owner` cannot have `port`. */
  const reason = async (owner: string, port: number): Promise<string> => {
    const [other] = claims.others(owner, port);
    return other === undefined
      ? `${(await holder(port))?.holder ?? 'somebody'} listens on it`
      : `${other} has registered it`;
  };

  const refuse = async (owner: string, from: number, to: number): Promise<never> => {
    const why =
      from === to
        ? `port ${from} is taken: ${await reason(owner, from)}`
        : `no port from ${from} to ${to} is free`;
    throw fail('port_in_use', why);
  };

  const firstFree = (owner: string, from: number, to: number, keep: number | null): number | undefined => {
    const listening = new Set(table().map((row) => row.port));
    const isFree = (port: number) => claims.others(owner, port).length === 0 && !listening.has(port);
    if (keep !== null && isFree(keep)) return keep;
    for (let port = from; port <= to; port += 1) if (isFree(port)) return port;
    return undefined;
  };

  return {
    claim({ owner, port }) {
      claims.set(owner, port);
      return { others: claims.others(owner, port) };
    },
    release({ owner }) {
      claims.drop(owner);
      return null;
    },
    lease({ owner, from, to, keep }) {
      const port = firstFree(owner, from, to, keep);
      if (port === undefined) return context.later(refuse(owner, from, to));
      claims.set(owner, port);
      return { port };
    },
    listener({ port }) {
      return context.later(holder(port).then((listener) => ({ listener })));
    },
  };
});
