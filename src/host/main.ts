// The process host: puts its parts together, and ends when nobody needs it.
import { mkdirSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isListening } from '../adapters/host/host_socket.ts';
import { hostFolder } from '../adapters/host/spawn_host.ts';
import { type Libc, loadLibc } from '../adapters/process/libc.ts';
import { bootId } from '../adapters/process/process_table.ts';
import { createProcessTree } from '../adapters/process/process_tree.ts';
import { type ReservedDescriptor, reserveDescriptor } from '../adapters/process/reserved_descriptor.ts';
import { ledgerFile } from '../adapters/storage/ledger_file.ts';
import { createNodeLookup } from '../protocol/address.ts';
import type { DaemonProcess } from '../protocol/host_handshake.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { createNode } from '../runtime/node.ts';
import { adoptRuns } from './adopt_runs.ts';
import { type DaemonGate, openDaemonGate } from './daemon_gate.ts';
import { Fifos } from './fifo.ts';
import { hostActor } from './host_actor.ts';
import { HostRuns } from './host_runs.ts';
import { createLogWriters, type LogWriters } from './log_writers.ts';
import { loadTerminalSpawner, type SpawnTerminal } from './pty.ts';
import { reapChildren } from './reap_children.ts';
import { openRunLedger } from './run_ledger.ts';
import { createTreeStops, type TreeStops } from './stop_tree.ts';

export interface HostOptions {
  stateDir: string;
  /** Of the package. */
  version: string;
  /** The daemon that has started it, which comes for it. */
  startedBy: DaemonProcess | null;
}

/** What the host keeps, put together. */
interface HostParts {
  runs: HostRuns;
  stops: TreeStops;
  logWriters: LogWriters;
  /** Begins to load node-pty, once. */
  loadTerminals: () => Promise<SpawnTerminal>;
  /** Nothing would be lost if the host ended now. */
  isIdle: () => boolean;
  /** Leaves nothing behind that the next host does not need. */
  removeFreeFifos: () => void;
}

/** A host that no daemon has come to ends after this long. */
const NO_DAEMON_MS = 10_000;
/** How often it looks whether it is still needed while no daemon is connected. */
const NEEDED_CHECK_MS = 250;
/** An end that was not acknowledged is told again. */
const RESEND_END_MS = 2_000;
const LOAD_PTY_AFTER_MS = 500;
/** How often a host that finds another one's lock looks again. */
const LOCK_RETRY_MS = 5;
const INIT_PID = 1;

const log = (text: string): void => {
  process.stderr.write(`${new Date().toISOString()} host ${process.pid}: ${text}\n`);
};

/** Keeps what this process was given beyond stdin, stdout and stderr from all it will start. */
function closeInherited(libc: Libc): void {
  for (const name of readdirSync('/dev/fd')) if (Number(name) > 2) libc.closeOnExec(Number(name));
}

/**
 * Whether this process is the only host of the folder. The lock lasts until its end, however that comes; without one, who
 * answers first.
 */
async function acquireLock(folder: string, libc: Libc | null): Promise<boolean> {
  if (!libc) return !(await isListening(folder));
  const lock = openSync(join(folder, 'lock'), 'w', 0o600);
  const began = systemClock.monotonic();
  while (!libc.lock(lock)) {
    // Who has it and answers stays. Who does not is about to answer, or to end: then a daemon waits for this one.
    if (await isListening(folder)) return false;
    if (systemClock.monotonic() - began > NO_DAEMON_MS) return false;
    // Not by the clock, whose timers keep no process alive.
    await pause(LOCK_RETRY_MS);
  }
  return true;
}

function createParts(
  { stateDir, spare }: { stateDir: string; spare: ReservedDescriptor },
  libc: Libc | null,
  node: Node,
  daemonPid: () => number,
): HostParts {
  const { clock } = node;
  const boot = bootId();
  const fifos = new Fifos(join(stateDir, 'runs'), libc);
  const service = (name: string) => node.ref(`service:${name}`);
  const ledger = openRunLedger(ledgerFile(hostFolder(stateDir)));
  const journal = createLogWriters(join(stateDir, 'logs'), clock.now, (name, end) =>
    service(name).tell('grew', { end }),
  );
  const stops = createTreeStops({
    clock,
    tree: createProcessTree(),
    roots: () => runs.roots(),
    protectedPids: () => new Set([INIT_PID, process.pid, daemonPid()]),
    reservedDescriptor: spare,
    onScanFailed: (error) => log(`cannot see what runs, so no stop goes on: ${error}`),
  });
  let loading: Promise<SpawnTerminal> | undefined;
  const terminals = () => {
    loading ??= loadTerminalSpawner();
    return loading;
  };
  const ended = (end: RunEnd) => service(end.service).tell('exited', end);
  const start = libc && reapChildren(libc, () => runs.childPids(), stops.checkSoon);
  const runs: HostRuns = new HostRuns({
    ...{
      clock,
      ledger,
      logWriters: journal,
      stops,
      boot,
      fifos,
      libc,
      startProgram: start,
      loadTerminals: terminals,
      onEnded: ended,
      reservedDescriptor: spare,
    },
  });
  adoptRuns({ clock, ledger, logWriters: journal, stops, runs, boot, fifos, libc });
  clock.every(RESEND_END_MS, () => {
    ledger.flush();
    for (const end of runs.unacknowledged(clock.now() - RESEND_END_MS)) ended(end);
  });
  const idle = () => runs.liveCount === 0 && stops.roots().length === 0 && ledger.flush();
  return {
    runs,
    stops,
    logWriters: journal,
    loadTerminals: terminals,
    isIdle: idle,
    removeFreeFifos: () => fifos.removeFree(),
  };
}

/** Ends the process once it has no process, no daemon and nothing to write down. Returns what to call when that may be. */
function exitWhenUnneeded(gate: DaemonGate, { isIdle, logWriters, removeFreeFifos }: HostParts): () => void {
  const startedAt = systemClock.monotonic();
  let pending = false;
  const needed = () => {
    const daemon = gate.daemon();
    if (daemon) return !gate.isOutdated(daemon);
    return !gate.hasMetDaemon && systemClock.monotonic() - startedAt < NO_DAEMON_MS;
  };
  const look = () => {
    if (gate.connections === 0) logWriters.unfollowAll();
    if (isIdle() && !needed()) {
      gate.close();
      removeFreeFifos();
      process.exit(0);
    }
    if (pending || gate.connections > 0) return;
    pending = true;
    systemClock.after(NEEDED_CHECK_MS, () => {
      pending = false;
      look();
    });
  };
  return look;
}

/** Runs the host of a state directory in this process; does nothing when there is one. */
export async function startHost({ stateDir, version, startedBy }: HostOptions): Promise<void> {
  process.umask(0o077);
  const spare = reserveDescriptor();
  // Agents die with this process: a defect in one handler must not be their end.
  process.on('uncaughtException', (error) => log(`defect: ${error.stack}`));
  const folder = hostFolder(stateDir);
  for (const path of [folder, join(stateDir, 'runs')]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const libc = await loadLibc().catch((error) => {
    log(`koffi does not load, so there are no terminals and orphans are not adopted: ${error}`);
    return null;
  });
  if (!(await acquireLock(folder, libc))) return;
  if (libc) closeInherited(libc);

  // Threads that `service:<name>` is spread over, as the daemon says.
  let services = 1;
  let door: DaemonGate | undefined;
  let look = () => {};
  const node = createNode({
    name: 'host',
    clock: systemClock,
    nodeOf: (address) => createNodeLookup({ services, tethers: 1 })(address),
    onCrash: (address, error) => log(`defect in ${address}: ${error instanceof Error ? error.stack : error}`),
  });
  const parts = createParts({ stateDir, spare }, libc, node, () => door?.daemon()?.daemonPid ?? INIT_PID);
  await node.start('host', hostActor, parts);
  door = await openDaemonGate({
    folder,
    version,
    startedBy,
    isIdle: parts.isIdle,
    onWelcome: (hello, pipe) => {
      services = hello.services;
      node.connect(hello.node, pipe);
    },
    onLeft: () => look(),
  });
  look = exitWhenUnneeded(door, parts);
  look();
  // A daemon of another version waits for the last process to end.
  systemClock.every(RESEND_END_MS, () => look());
  // Loaded ahead of the first agent, but not while a daemon is starting, which is what this host was started for.
  systemClock.after(LOAD_PTY_AFTER_MS, () => {
    parts
      .loadTerminals()
      .catch((error) => log(`node-pty does not load, so there are no terminals: ${error}`));
  });
}
