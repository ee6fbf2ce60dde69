// A thread's connection to the process host, made at the start and again after each loss.
import { connectHost, reconnectHost } from '../adapters/host/host_connection.ts';
import type { Node, Pipe } from '../runtime/actor.ts';
import { THREADS } from '../settings/limits.ts';
import { VERSION } from '../settings/version.ts';
import { reportCrash } from './daemon_log.ts';
import type { ThreadData } from './thread_data.ts';

/**
 * Connects to the host, and starts one if there is none. `isSpawned`: a host was just started, so wait for it
 * first. Rejects with second_daemon, host_refused, host_absent.
 */
export async function dialHost(node: Node, data: ThreadData, isSpawned: boolean): Promise<Pipe> {
  const { stateDir, hostEntry, session } = data;
  const { pipe } = await connectHost({
    stateDir,
    entry: hostEntry,
    identity: { version: VERSION, session, node: node.name },
    withinMs: THREADS.hostStartTimeoutMs,
    isSpawned,
  });
  return pipe;
}

export interface HostRecovery {
  dial: () => Promise<Pipe>;
  /** Runs at each loss. The function it returns runs once the next host has taken over. */
  onLost?: () => () => void;
  /** Runs after each reconnect to a host. */
  onJoined: () => unknown;
  /** Reports a loss, and obstacles to a new host. */
  report: (line: string) => void;
}

/** Joins the host again after each loss, until the node has stopped. */
export function keepHostJoined(node: Node, recovery: HostRecovery): void {
  const { dial, onLost, onJoined, report } = recovery;
  const isOver = () => node.scope.signal.aborted;
  const rejoin = async (): Promise<void> => {
    report('the process host is gone: a new one takes over');
    const onTakenOver = onLost?.();
    const pipe = await reconnectHost(dial, isOver, report);
    // A host takes over the runs before it listens.
    onTakenOver?.();
    if (!pipe) return;
    node.connect('host', pipe);
    await onJoined();
  };
  node.onPeerLost((peer) => {
    if (peer === 'host' && !isOver())
      rejoin().catch((error: unknown) => reportCrash('hostlink', error, false));
  });
}
