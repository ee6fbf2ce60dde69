// The process host: puts its parts together, and ends when nobody needs it.
import { mkdirSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isServed } from '../adapters/host/socket.ts';
import { hostFolder } from '../adapters/host/spawn.ts';
import { holdSpare, type Spare } from '../adapters/process/descriptors.ts';
import { type Libc, loadLibc } from '../adapters/process/libc.ts';
import { bootId } from '../adapters/process/proctable.ts';
import { createTree } from '../adapters/process/tree.ts';
import { ledgerFile } from '../adapters/storage/ledgerfile.ts';
import { placement } from '../protocol/address.ts';
import type { DaemonProcess } from '../protocol/hello.ts';
import type { RunEnd, ServiceProtocol } from '../protocol/service.ts';
import type { Node } from '../runtime/actor.ts';
import { realClock } from '../runtime/clock.ts';
import { createNode } from '../runtime/node.ts';
import { hostActor } from './actor.ts';
import { keepChildren } from './children.ts';
import { type Door, openDoor } from './door.ts';
import { Fifos } from './fifo.ts';
import { createJournal, type Journal } from './journal.ts';
import { openLedger } from './ledger.ts';
import { loadPty, type SpawnTerminal } from './pty.ts';
import { Runs } from './runs.ts';
import { createStops, type Stops } from './stop.ts';
import { takeOver } from './takeover.ts';

export interface HostOptions {
  stateDir: string;
  /** Of the package. */
  version: string;
  /** The daemon that has started it, which comes for it. */
  startedBy: DaemonProcess | null;
}

/** What the host keeps, put together. */
interface Parts {
  runs: Runs;
  stops: Stops;
  journal: Journal;
  /** Begins to load node-pty, once. */
  terminals: () => Promise<SpawnTerminal>;
  /** Nothing would be lost if the host ended now. */
  idle: () => boolean;
  /** Leaves nothing behind that the next host does not need. */
  tidy: () => void;
}

/** A host that no daemon has come to ends after this long. */
const UNMET_MS = 10_000;
/** How often it looks whether it is still needed while no daemon is connected. */
const NEEDED_MS = 250;
/** An end that was not acknowledged is told again. */
const TELL_AGAIN_MS = 2_000;
const TERMINALS_MS = 500;
/** How often a host that finds another one's lock looks again. */
const CLAIM_AGAIN_MS = 5;
const INIT = 1;

const note = (text: string): void => {
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
async function claim(folder: string, libc: Libc | null): Promise<boolean> {
  if (!libc) return !(await isServed(folder));
  const lock = openSync(join(folder, 'lock'), 'w', 0o600);
  const began = realClock.monotonic();
  while (!libc.lock(lock)) {
    // Who has it and answers stays. Who does not is about to answer, or to end: then a daemon waits for this one.
    if (await isServed(folder)) return false;
    if (realClock.monotonic() - began > UNMET_MS) return false;
    // Not by the clock, whose timers keep no process alive.
    await pause(CLAIM_AGAIN_MS);
  }
  return true;
}

function assemble(
  { stateDir, spare }: { stateDir: string; spare: Spare },
  libc: Libc | null,
  node: Node,
  daemonPid: () => number,
): Parts {
  const { clock } = node;
  const boot = bootId();
  const fifos = new Fifos(join(stateDir, 'runs'), libc);
  const service = (name: string) => node.ref<ServiceProtocol>(`service:${name}`);
  const ledger = openLedger(ledgerFile(hostFolder(stateDir)));
  const journal = createJournal(join(stateDir, 'logs'), clock.now, (name, end) =>
    service(name).tell('grew', { end }),
  );
  const stops = createStops({
    clock,
    tree: createTree(),
    roots: () => runs.roots(),
    spared: () => new Set([INIT, process.pid, daemonPid()]),
    spare,
    blind: (error) => note(`cannot see what runs, so no stop goes on: ${error}`),
  });
  let loading: Promise<SpawnTerminal> | undefined;
  const terminals = () => {
    loading ??= loadPty();
    return loading;
  };
  const ended = (end: RunEnd) => service(end.service).tell('exited', end);
  const start = libc && keepChildren(libc, () => runs.pids(), stops.poke);
  const runs: Runs = new Runs({
    ...{ clock, ledger, journal, stops, boot, fifos, libc, start, terminals, ended, spare },
  });
  takeOver({ clock, ledger, journal, stops, runs, boot, fifos, libc });
  clock.every(TELL_AGAIN_MS, () => {
    ledger.settle();
    for (const end of runs.unacknowledged(clock.now() - TELL_AGAIN_MS)) ended(end);
  });
  const idle = () => runs.live === 0 && stops.roots().length === 0 && ledger.settle();
  return { runs, stops, journal, terminals, idle, tidy: () => fifos.clear() };
}

/** Ends the process once it has no process, no daemon and nothing to write down. Returns what to call when that may be. */
function endWhenUnneeded(door: Door, { idle, journal, tidy }: Parts): () => void {
  const startedAt = realClock.monotonic();
  let pending = false;
  const needed = () => {
    const daemon = door.daemon();
    if (daemon) return !door.outdated(daemon);
    return !door.met && realClock.monotonic() - startedAt < UNMET_MS;
  };
  const look = () => {
    if (door.connections === 0) journal.unfollowAll();
    if (idle() && !needed()) {
      door.close();
      tidy();
      process.exit(0);
    }
    if (pending || door.connections > 0) return;
    pending = true;
    realClock.after(NEEDED_MS, () => {
      pending = false;
      look();
    });
  };
  return look;
}

/** Runs the host of a state directory in this process; does nothing when there is one. */
export async function startHost({ stateDir, version, startedBy }: HostOptions): Promise<void> {
  process.umask(0o077);
  const spare = holdSpare();
  // Agents die with this process: a defect in one handler must not be their end.
  process.on('uncaughtException', (error) => note(`defect: ${error.stack}`));
  const folder = hostFolder(stateDir);
  for (const path of [folder, join(stateDir, 'runs')]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const libc = await loadLibc().catch((error) => {
    note(`koffi does not load, so there are no terminals and orphans are not adopted: ${error}`);
    return null;
  });
  if (!(await claim(folder, libc))) return;
  if (libc) closeInherited(libc);

  // Threads that `service:<name>` is spread over, as the daemon says.
  let services = 1;
  let door: Door | undefined;
  let look = () => {};
  const node = createNode({
    name: 'host',
    clock: realClock,
    place: (address) => placement({ services, tethers: 1 })(address),
    onCrash: (address, error) =>
      note(`defect in ${address}: ${error instanceof Error ? error.stack : error}`),
  });
  const parts = assemble({ stateDir, spare }, libc, node, () => door?.daemon()?.daemonPid ?? INIT);
  await node.start('host', hostActor, parts);
  door = await openDoor({
    folder,
    version,
    startedBy,
    idle: parts.idle,
    welcome: (hello, pipe) => {
      services = hello.services;
      node.connect(hello.node, pipe);
    },
    left: () => look(),
  });
  look = endWhenUnneeded(door, parts);
  look();
  // A daemon of another version waits for the last process to end.
  realClock.every(TELL_AGAIN_MS, () => look());
  // Loaded ahead of the first agent, but not while a daemon is starting, which is what this host was started for.
  realClock.after(TERMINALS_MS, () => {
    parts.terminals().catch((error) => note(`node-pty does not load, so there are no terminals: ${error}`));
  });
}
