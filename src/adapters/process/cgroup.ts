// Linux cgroups, version 2: one for each run with limits, below that of Berth itself. This needs a delegated
// cgroup: one that Berth may write to, and that contains no other processes.
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { RunLimits } from '../../protocol/service.ts';
import { MIB } from '../../settings/limits.ts';
import { type ProcessRow, processTable } from './process_table.ts';

/**
 * The cgroup for Berth's own processes: only cgroups without processes of their own may impose limits on
 * others.
 */
const OWN_GROUP = 'berth.supervisor';
const RUN_GROUP = 'berth.run-';
/** The period of a CPU quota, in microseconds. */
const CPU_PERIOD = 100_000;

const CONTROLLERS: { readonly [K in keyof RunLimits]-?: string } = {
  memoryMB: 'memory',
  cpus: 'cpu',
  pids: 'pids',
};

/** Where cgroups can be created, and what they can limit. */
export interface CgroupPlace {
  /** The folder in which cgroups are created. */
  folder: string;
  controllers: readonly string[];
}

const wordsOf = (path: string): string[] => readFileSync(path, 'latin1').split(/\s+/).filter(Boolean);

/** The folder of a process's cgroup; null if the system does not use cgroups version 2. */
export function cgroupFolder(pid: number | 'self'): string | null {
  try {
    const path = /^0::(\/.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1];
    // Fields 4 and 5 are the root of the mount and its place; the kind follows a lone hyphen.
    const mount = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
      .split('\n')
      .find((line) => line.includes(' - cgroup2 '))
      ?.split(' ');
    const [root = '/', place] = mount?.slice(3) ?? [];
    if (path === undefined || place === undefined) return null;
    const below = root === '/' ? path : path.startsWith(root) ? path.slice(root.length) : null;
    return below === null ? null : join(place, below);
  } catch {
    return null;
  }
}

/** The place below the cgroup `own`, or below its parent if Berth has moved there. Throws with the reason. */
export function cgroupPlace(own: string): CgroupPlace {
  const folder = basename(own) === OWN_GROUP ? dirname(own) : own;
  for (const file of ['.', 'cgroup.procs', 'cgroup.subtree_control'])
    accessSync(join(folder, file), constants.W_OK);
  return { folder, controllers: wordsOf(join(folder, 'cgroup.controllers')) };
}

/** The limits that cgroups of `place` cannot enforce. */
export const missingControllers = ({ controllers }: CgroupPlace, limits: RunLimits): string[] =>
  Object.entries(CONTROLLERS).flatMap(([limit, controller]) =>
    limits[limit as keyof RunLimits] === undefined || controllers.includes(controller) ? [] : [controller],
  );

/** The processes in a group itself. */
const processesIn = (folder: string): number[] => wordsOf(join(folder, 'cgroup.procs')).map(Number);

/** Whether a process is the host of the state directory `stateDir`. */
function isHost(pid: number, stateDir: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[2] === stateDir;
  } catch {
    return false;
  }
}

/** The daemon `daemonPid`, the host of its state directory, and everything they have started. */
export function berthProcesses(daemonPid: number, stateDir: string): Set<number> {
  const table = processTable();
  const own = new Set([...table.keys()].filter((pid) => pid === daemonPid || isHost(pid, stateDir)));
  const isOwn = (row: ProcessRow | undefined): boolean =>
    row !== undefined && (own.has(row.pid) || (row.ppid > 1 && isOwn(table.get(row.ppid))));
  return new Set([...table.values()].filter(isOwn).map(({ pid }) => pid));
}

/** The processes in `place` that are not in `own`, which prevent cgroups there. Throws with the reason. */
export const strangersIn = ({ folder }: CgroupPlace, own: ReadonlySet<number>): number[] =>
  // Only the root cgroup may have both processes and cgroups with limits.
  existsSync(join(folder, 'cgroup.type')) ? processesIn(folder).filter((pid) => !own.has(pid)) : [];

/**
 * Prepares `place` for the cgroups of runs: moves its processes, which must all be in `own`, to a cgroup of
 * their own, and enables the controllers. Throws with the reason.
 */
export function prepare(place: CgroupPlace, own: ReadonlySet<number>): void {
  const { folder, controllers } = place;
  const wanted = Object.values(CONTROLLERS).filter((name) => controllers.includes(name));
  const control = join(folder, 'cgroup.subtree_control');
  const given = wordsOf(control);
  const missing = wanted.filter((name) => !given.includes(name));
  if (missing.length === 0) return;
  const [stranger] = strangersIn(place, own);
  if (stranger !== undefined) throw new Error(`process ${stranger} in ${folder} is not of Berth`);
  if (existsSync(join(folder, 'cgroup.type'))) {
    const home = join(folder, OWN_GROUP);
    mkdirSync(home, { recursive: true });
    for (const pid of processesIn(folder)) writeFileSync(join(home, 'cgroup.procs'), String(pid));
  }
  writeFileSync(control, missing.map((name) => `+${name}`).join(' '));
}

/** The folder of the run's group with that name. */
export const runGroup = ({ folder }: CgroupPlace, name: string): string =>
  join(folder, `${RUN_GROUP}${name}`);

/** The names of the runs' groups in `place`. */
export const groupNames = ({ folder }: CgroupPlace): string[] =>
  readdirSync(folder).flatMap((name) => (name.startsWith(RUN_GROUP) ? [name.slice(RUN_GROUP.length)] : []));

/** Makes a group with `limits`. Throws with the reason. */
export function makeGroup(folder: string, { memoryMB, cpus, pids }: RunLimits): void {
  mkdirSync(folder);
  const set = (file: string, value: string): void => writeFileSync(join(folder, file), value);
  if (memoryMB !== undefined) {
    set('memory.max', String(memoryMB * MIB));
    // A run is of no use without one of its processes, so they are killed together.
    set('memory.oom.group', '1');
    if (existsSync(join(folder, 'memory.swap.max'))) set('memory.swap.max', '0');
  }
  if (cpus !== undefined) set('cpu.max', `${Math.round(cpus * CPU_PERIOD)} ${CPU_PERIOD}`);
  if (pids !== undefined) set('pids.max', String(pids));
}

/** Whether the system has ended a process of the group at its memory limit. */
export function wasOutOfMemory(folder: string): boolean {
  try {
    const [, count = '0'] =
      /^oom_kill (\d+)$/m.exec(readFileSync(join(folder, 'memory.events'), 'latin1')) ?? [];
    return Number(count) > 0;
  } catch {
    return false;
  }
}

/** Kills every process of a cgroup at once. Does nothing if the kernel cannot (before 5.14). */
export function killGroup(folder: string): void {
  try {
    writeFileSync(join(folder, 'cgroup.kill'), '1');
  } catch {
    // The cgroup is gone, or its processes are found by other means.
  }
}

/** Removes a cgroup. False while it has processes. */
export function removeGroup(folder: string): boolean {
  try {
    rmdirSync(folder);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
  return true;
}
