// The process host: assembles its parts, and exits when it is no longer needed.

import { mkdirSync, openSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { lookUpPids } from '../adapters/answering_path.ts';
import { isListening } from '../adapters/host/host_socket.ts';
import { boundOwnLog } from '../adapters/own_log.ts';
import { type Libc, loadLibc } from '../adapters/process/libc.ts';
import { bootId, processTable } from '../adapters/process/process_table.ts';
import { ownEnvironReader, ProcessTree } from '../adapters/process/process_tree.ts';
import { type ReservedDescriptor, reserveDescriptor } from '../adapters/process/reserved_descriptor.ts';
import { giveMemoryBackAtRest } from '../adapters/process/resting_memory.ts';
import { ledgerFile } from '../adapters/storage/ledger_file.ts';
import { createNodeLookup, serviceAddress } from '../protocol/address.ts';
import type { DaemonProcess } from '../protocol/host_handshake.ts';
import type { RunEnd } from '../protocol/service.ts';
import type { Clock, Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { createNode } from '../runtime/node.ts';
import { POOL_SIZES } from '../settings/pool_sizes.ts';
import { stateDirId, statePaths } from '../settings/state_paths.ts';
import { adoptRuns } from './adopt_runs.ts';
import { DaemonGate } from './daemon_gate.ts';
import { Fifos } from './fifo.ts';
import { hostActor } from './host_actor.ts';
import { HostRuns } from './host_runs.ts';
import { createLogWriters, type LogWriters } from './log_writers.ts';
import { MovedDirectory } from './moved_directory.ts';
import { NoticeSockets } from './notice_sockets.ts';
import { loadTerminalSpawner, type SpawnTerminal } from './pty.ts';
import { reapChildren } from './reap_children.ts';
import { RunCommands } from './run_commands.ts';
import { RunGroups } from './run_groups.ts';
import { RunLedger } from './run_ledger.ts';
import { TerminalWatch } from './terminal_watch.ts';
import { TreeStops } from './tree_stops.ts';

export interface HostOptions {
  stateDir: string;
  /** The version of the package. */
  version: string;
  /** The daemon that started this host; null: unknown. */
  startedBy: DaemonProcess | null;
}

/** The parts of a host used in this file. */
interface HostParts {
  runs: HostRuns;
  logWriters: LogWriters;
  notices: NoticeSockets;
  watch: TerminalWatch;
  /** The state directory was renamed. */
  moveTo: (stateDir: string) => void;
  /** Loads node-pty. */
  loadTerminals: () => Promise<SpawnTerminal>;
  /** Whether nothing would be lost if the host exited now. */
  isIdle: () => boolean;
  /** Removes FIFOs that the next host does not need. */
  removeFreeFifos: () => void;
}

interface HostPartsConfig {
  stateDir: string;
  libc: Libc | null;
  node: Node;
  reservedDescriptor: ReservedDescriptor;
  daemonPid: () => number;
}

/** A host without any daemon exits after this time. */
const NO_DAEMON_MS = 10_000;
/** How often to check whether the host is needed while no daemon is connected. */
const NEEDED_CHECK_MS = 250;
/** How often unacknowledged ends are sent again. */
const RESEND_END_MS = 2_000;
const LOAD_PTY_AFTER_MS = 500;
/** How often to check that the socket exists and the log is not too long. */
const SOCKET_CHECK_MS = 2_000;
/** Interval between attempts to take a lock that another host holds. */
const LOCK_RETRY_MS = 5;
const INIT_PID = 1;

const log = (text: string): void => {
  process.stderr.write(`${new Date().toISOString()} host ${process.pid}: ${text}\n`);
};

/**
 * Prevents child processes from inheriting the descriptors that this process inherited, beyond stdin, stdout
 * and stderr.
 */
function closeInherited(libc: Libc): void {
  for (const name of readdirSync('/dev/fd')) if (Number(name) > 2) libc.closeOnExec(Number(name));
}

/** Locks an open folder. A file system that has no locks for folders counts as having granted it. */
function lockFolder(libc: Libc, fd: number): boolean {
  try {
    return libc.lock(fd);
  } catch {
    return true;
  }
}

/**
 * Whether this process is the only host of the folder. The lock lasts until the process ends, however it
 * ends. Without libc there is no lock, and the host that answers on the socket counts.
 */
async function acquireLock(folder: string, libc: Libc | null): Promise<boolean> {
  if (!libc) return !(await isListening(folder));
  const stateDir = openSync(dirname(folder), 'r');
  const file = openSync(join(folder, 'lock'), 'a', 0o600);
  const began = systemClock.monotonic();
  // The file alone is no lock: if it is removed while its host lives, the next host makes another one.
  while (!(lockFolder(libc, stateDir) && libc.lock(file))) {
    // A host that holds the lock and answers stays. One that does not is about to answer, or to exit while a
    // daemon waits for this one.
    if (await isListening(folder)) return false;
    if (systemClock.monotonic() - began > NO_DAEMON_MS) return false;
    // Not with the node's clock, whose timers do not keep the process alive.
    await pause(LOCK_RETRY_MS);
  }
  return true;
}

/** Loads node-pty at the first call, and after a failure at the next. */
function terminalLoader(clock: Clock): () => Promise<SpawnTerminal> {
  let terminals: Promise<SpawnTerminal> | undefined;
  return () => {
    terminals ??= loadTerminalSpawner(clock).catch((error: unknown) => {
      terminals = undefined;
      throw error;
    });
    return terminals;
  };
}

/** The parts that have files in the state directory. */
interface FileParts {
  ledger: RunLedger;
  logWriters: LogWriters;
  fifos: Fifos;
  notices: NoticeSockets;
}

/** The state directory is `stateDir` now. */
function moveFiles({ ledger, logWriters, fifos, notices }: FileParts, stateDir: string): void {
  const { host, logEnds, logs, runs } = statePaths(stateDir);
  ledger.path = ledgerFile(host);
  logWriters.moveTo(logs, logEnds);
  fifos.folder = runs;
  notices.moveTo(runs);
}

/** Creates the parts and adopts the runs of an earlier host. */
function createParts({ stateDir, libc, node, reservedDescriptor, daemonPid }: HostPartsConfig): HostParts {
  const { clock } = node;
  const origin = { boot: bootId(), stateId: stateDirId(stateDir) };
  const paths = statePaths(stateDir);
  const fifos = new Fifos(paths.runs, libc);
  const service = (name: string) => node.ref(serviceAddress(name));
  const ledger = new RunLedger(ledgerFile(paths.host));
  const onGrowth = (name: string, end: number) => service(name).tell('grew', { end });
  const logWriters = createLogWriters(paths.logs, paths.logEnds, clock.now, onGrowth);
  const tree = new ProcessTree(processTable, ownEnvironReader(origin.stateId));
  const stops = new TreeStops({
    clock,
    tree,
    roots: () => runs.roots(),
    protectedPids: () => new Set([INIT_PID, process.pid, daemonPid()]),
    reservedDescriptor,
    onScanFailed: (error) => log(`cannot see what runs, so no stop goes on: ${error}`),
  });
  const commands = new RunCommands(clock, stops);
  const groups = new RunGroups({
    clock,
    stateId: origin.stateId,
    ownPids: () => {
      const { members } = reservedDescriptor.lend(() => tree.scan(runs.roots(), new Set()));
      const pids = [...members.values()].flatMap((rows) => rows.map(({ pid }) => pid));
      return new Set([process.pid, daemonPid(), ...runs.childPids(), ...pids]);
    },
    log,
  });
  const notices = new NoticeSockets(paths.runs, libc, clock);
  const watch = new TerminalWatch(clock, (name, run, reading) =>
    service(name).tell('terminalMoved', { run, ...reading }),
  );
  const loadTerminals = terminalLoader(clock);
  const onEnded = (end: RunEnd) => service(end.service).tell('exited', end);
  const startProgram =
    libc &&
    reapChildren(
      libc,
      () => new Set([...runs.childPids(), ...lookUpPids()]),
      () => stops.checkSoon(),
    );
  const shared = { clock, ledger, logWriters, stops, origin, fifos, libc, commands, groups, notices, watch };
  const runs: HostRuns = new HostRuns({
    ...shared,
    startProgram,
    loadTerminals,
    onEnded,
    reservedDescriptor,
  });
  adoptRuns({ ...shared, runs, log });
  clock.every(RESEND_END_MS, () => {
    ledger.flush();
    for (const end of runs.unacknowledged(clock.now() - RESEND_END_MS)) onEnded(end);
  });
  const isIdle = () => runs.liveCount === 0 && stops.roots().length === 0 && ledger.flush();
  const removeFreeFifos = () => fifos.removeFree();
  const moveTo = (to: string) => moveFiles(shared, to);
  return { runs, logWriters, notices, watch, moveTo, loadTerminals, isIdle, removeFreeFifos };
}

/**
 * Returns a function that ends this process once it has no child process, no daemon and nothing to write.
 * Call it whenever that may be the case; without a connection it repeats itself.
 */
function createExitCheck(
  gate: DaemonGate,
  { isIdle, logWriters, removeFreeFifos, watch }: HostParts,
  clock: Clock,
): () => void {
  const startedAt = clock.monotonic();
  let isScheduled = false;
  const isNeeded = () => {
    const daemon = gate.daemon();
    if (daemon) return !gate.isOutdated(daemon);
    return !gate.hasMetDaemon && clock.monotonic() - startedAt < NO_DAEMON_MS;
  };
  const check = () => {
    if (gate.connections === 0) {
      logWriters.unfollowAll();
      watch.unwatchAll();
    }
    if (isIdle() && !isNeeded()) {
      gate.close();
      removeFreeFifos();
      process.exit(0);
    }
    if (isScheduled || gate.connections > 0) return;
    isScheduled = true;
    clock.after(NEEDED_CHECK_MS, () => {
      isScheduled = false;
      check();
    });
  };
  return check;
}

/**
 * Runs the host of a state directory in this process. Does nothing if there already is one. Rejects when it
 * cannot start.
 */
export async function startHost({ stateDir, version, startedBy }: HostOptions): Promise<void> {
  process.umask(0o077);
  const reservedDescriptor = reserveDescriptor();
  // Agents die with this process, so a defect in one handler must not end it.
  process.on('uncaughtException', (error) => log(`defect: ${error.stack}`));
  const { host: folder, runs } = statePaths(stateDir);
  for (const path of [folder, runs]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const libc = await loadLibc().catch((error) => {
    log(`koffi does not load, so there are no terminals and orphans are not adopted: ${error}`);
    return null;
  });
  if (!(await acquireLock(folder, libc))) return;
  const directory = new MovedDirectory(stateDir, (to) => {
    log(`its state directory is ${to} now`);
    gate.moveTo(statePaths(to).host);
    parts.moveTo(to);
  });
  if (libc) closeInherited(libc);
  giveMemoryBackAtRest({ clock: systemClock, trim: async () => libc?.trim() });

  const node = createNode({
    name: 'host',
    clock: systemClock,
    nodeOf: createNodeLookup(POOL_SIZES),
    onCrash: (address, error) => log(`defect in ${address}: ${error instanceof Error ? error.stack : error}`),
  });
  const gate: DaemonGate = new DaemonGate({
    folder,
    version,
    startedBy,
    follow: () => directory.follow(),
    isIdle: () => parts.isIdle(),
    onWelcome: (hello, pipe) => node.connect(hello.node, pipe),
    onLeft: () => checkExit(),
  });
  const daemonPid = () => gate.daemon()?.daemonPid ?? INIT_PID;
  const parts = createParts({ stateDir, libc, node, reservedDescriptor, daemonPid });
  await node.start('host', hostActor, parts);
  const checkExit = createExitCheck(gate, parts, node.clock);
  // Someone who ends daemon and host at once, as `pkill berth` does, wants an orderly shutdown, in which the
  // daemon needs the host to stop the services.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, checkExit);
  await gate.listen();
  checkExit();
  // A daemon of another version waits for the last process to end.
  node.clock.every(RESEND_END_MS, checkExit);
  node.clock.every(SOCKET_CHECK_MS, () => {
    boundOwnLog(statePaths(directory.path).hostLog);
    gate.reopen().catch((error) => log(`its socket cannot be made anew: ${error}`));
  });
  // Loaded ahead of the first agent, but not while a daemon is starting, which is why this host was started.
  node.clock.after(LOAD_PTY_AFTER_MS, () => {
    parts
      .loadTerminals()
      .catch((error) => log(`node-pty does not load, so there are no terminals: ${error}`));
  });
}
