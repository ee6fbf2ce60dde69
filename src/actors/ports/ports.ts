// State: who has registered which port. Rebuilt from: the store; a lease whose registration never came is forgotten.
import { openListenerTable } from '../../adapters/process/listener_table.ts';
import type { ListeningSocket } from '../../adapters/process/listeners.ts';
import type { Store } from '../../adapters/storage/store.ts';
import { fail } from '../../protocol/errors.ts';
import type { PortsProtocol } from '../../protocol/ports.ts';
import { actor } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { portHolderOf, type ServiceMark } from './port_holder.ts';

export interface PortsConfig {
  store: Pick<Store, 'table'>;
}

/** Which owner has which port; several may have the same one, in the order in which they came. */
class PortClaims {
  private readonly namesByPort = new Map<number, Set<string>>();
  private readonly portByName = new Map<string, number>();

  claim(name: string, port: number): void {
    if (this.portByName.get(name) === port) return;
    this.release(name);
    this.portByName.set(name, port);
    this.namesByPort.set(port, (this.namesByPort.get(port) ?? new Set()).add(name));
  }

  release(name: string): void {
    const port = this.portByName.get(name);
    if (port === undefined) return;
    this.portByName.delete(name);
    const others = this.namesByPort.get(port);
    others?.delete(name);
    if (others?.size === 0) this.namesByPort.delete(port);
  }

  has(name: string): boolean {
    return this.portByName.has(name);
  }

  /** Who has `port` besides `owner`. */
  others(except: string, port: number): string[] {
    return [...(this.namesByPort.get(port) ?? [])].filter((name) => name !== except);
  }
}

/** The listening sockets, read at most once per turn: a hundred services that start at once ask for the same table. */
function oncePerTurn(read: () => ListeningSocket[]): () => ListeningSocket[] {
  let table: ListeningSocket[] | undefined;
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
export const portsActor = actor<PortsProtocol, PortsConfig>('ports', (context, { store }) => {
  const claims = new PortClaims();
  for (const [name, { spec }] of store.table('services').all()) claims.claim(name, spec.port);
  const listening = openListenerTable();
  context.scope.defer(listening.close);
  const table = oncePerTurn(listening.rows);

  /** Another daemon may have a service of the same name: what is ours is the last run that has ended, and the one the host has. */
  const isOurs = async ({ name, run }: ServiceMark): Promise<boolean> => {
    if (!claims.has(name)) return false;
    if (store.table('ends').get(name)?.run === run) return true;
    const asked = context.ref('host').ask('runOf', { service: name }, { deadlineMs: SERVICE.hostRetryMs });
    // Where the host does not say so at once the pid is told, which is as true.
    return (await asked.catch(() => null))?.run?.run === run;
  };

  const holder = async (port: number): Promise<{ pid: number | null; holder: string } | null> => {
    const found = portHolderOf(port, table());
    if (!found) return null;
    const { pid, label, mark } = found;
    return { pid, holder: mark && (await isOurs(mark)) ? mark.name : label };
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
      claims.claim(owner, port);
      return { others: claims.others(owner, port) };
    },
    release({ owner }) {
      claims.release(owner);
      return null;
    },
    lease({ owner, from, to, keep }) {
      const port = firstFree(owner, from, to, keep);
      if (port === undefined) return context.replyLater(refuse(owner, from, to));
      claims.claim(owner, port);
      return { port };
    },
    listener({ port }) {
      return context.replyLater(holder(port).then((listener) => ({ listener })));
    },
  };
});
