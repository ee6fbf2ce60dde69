// A tether to a workload of another Berth, without a daemon, for as long as its command runs.
import { openLoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import { openRelay, type RelayAdmission } from '../../adapters/relay/dial_relay.ts';
import { RelayLink } from '../../adapters/relay/relay_link.ts';
import type { TetherInput } from '../../protocol/tethers.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createNode } from '../../runtime/node.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { HeldConnections } from './held_connections.ts';
import { tetherActor } from './tether.ts';

export interface ForegroundOptions {
  tether: TetherInput;
  /** The ports to try; the first free one is taken. */
  ports: number[];
  /** Requests a ticket: where to connect, and with what. Rejects with a Failure. */
  admit(): Promise<RelayAdmission>;
  /** As in RelayLinkOptions. */
  watchHolder(): () => boolean;
  /** Receives the reason why a connection was reset. */
  onError(reason: string): void;
  /** Receives errors other than Failures. */
  onDefect(error: unknown): void;
}

const ADDRESS = 'tether:foreground';
const NODE = 'command';
const UNUSED = { connections: 0, bytesIn: 0, bytesOut: 0, lastError: null };

/** Listens until the process ends; resolves with the port. Fails port_in_use. */
export async function openForegroundTether(options: ForegroundOptions): Promise<{ port: number }> {
  const { tether, ports, onDefect, onError } = options;
  const link = new RelayLink({
    clock: systemClock,
    watchHolder: options.watchHolder,
    dial: (onClosed) => openRelay(options.admit, systemClock, onClosed),
    onDefect,
  });
  const node = createNode({
    name: NODE,
    clock: systemClock,
    nodeOf: () => NODE,
    mayAsk: () => true,
    onCrash: (_, error) => onDefect(error),
  });
  let lastError: string | null = null;
  const ref = await node.start(ADDRESS, tetherActor, {
    rule: { allow: 'public', apiOnLoopback: false },
    peers: await openLoopbackPeers(),
    networkClock: systemClock,
    held: new HeldConnections(TETHER.held),
    link,
    report: (numbers) => {
      if (numbers.lastError !== null && numbers.lastError !== lastError) onError(numbers.lastError);
      lastError = numbers.lastError;
    },
  });
  const stored = { ...tether, id: ADDRESS, clusterId: '', localPort: null, active: true };
  return ref.ask('open', { tether: stored, ports, numbers: UNUSED });
}
