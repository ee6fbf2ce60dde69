// The cgroups of runs with limits: docs/reference.md "Resource limits". Where there are none, the daemon
// watches memory instead.
import { existsSync } from 'node:fs';
import {
  type CgroupPlace,
  cgroupFolder,
  cgroupPlace,
  groupNames,
  killGroup,
  makeGroup,
  missingControllers,
  prepare,
  removeGroup,
  runGroup,
  wasOutOfMemory,
} from '../adapters/process/cgroup.ts';
import type { RunLimits } from '../protocol/service.ts';
import type { Clock } from '../runtime/actor.ts';
import { SERVICE } from '../settings/limits.ts';

const REMOVE_RETRY_MS = 5;

export interface RunGroupsConfig {
  clock: Clock;
  /** The id of the state directory, because a copy of it knows the same runs. */
  stateId: string;
  /** The processes of Berth and of its runs. */
  ownPids: () => ReadonlySet<number>;
  log: (text: string) => void;
}

export class RunGroups {
  private readonly config: RunGroupsConfig;
  /** undefined: not looked for yet; null: cgroups cannot be used. */
  private place: CgroupPlace | null | undefined;

  constructor(config: RunGroupsConfig) {
    this.config = config;
  }

  /** Creates the cgroup of a run and returns its folder; null if limits cannot be enforced. */
  make(run: string, limits: RunLimits): string | null {
    const place = this.find();
    if (!place || missingControllers(place, limits).length > 0) return null;
    const folder = runGroup(place, this.nameOf(run));
    try {
      prepare(place, this.config.ownPids());
      makeGroup(folder, limits);
      return folder;
    } catch (error) {
      removeGroup(folder);
      this.config.log(`no control group for a run with limits: ${error}`);
      return null;
    }
  }

  /** Whether the system has ended the run at its memory limit. */
  isOutOfMemory(folder: string | undefined): boolean {
    return folder !== undefined && wasOutOfMemory(folder);
  }

  /** The cgroup of a run that is no longer in the ledger; undefined if none. */
  folderOf(run: string): string | undefined {
    if (!this.place) return undefined;
    const folder = runGroup(this.place, this.nameOf(run));
    return existsSync(folder) ? folder : undefined;
  }

  /** Removes the cgroup of an ended run, unless it has left processes. */
  removeEmpty(folder: string): void {
    removeGroup(folder);
  }

  /** The last step of a stop: ends what is left in the cgroup of a run and removes it. */
  async end(folder: string | undefined): Promise<void> {
    const { clock } = this.config;
    if (folder === undefined) return;
    const began = clock.monotonic();
    for (; !removeGroup(folder) && clock.monotonic() - began < SERVICE.killTimeoutMs; ) {
      killGroup(folder);
      await new Promise<void>((resolve) => clock.after(REMOVE_RETRY_MS, resolve));
    }
  }

  /** Removes empty cgroups of this state directory's runs other than `runs`. */
  sweep(runs: ReadonlySet<string>): void {
    const place = this.find();
    if (!place) return;
    const kept = new Set([...runs].map((run) => this.nameOf(run)));
    const own = groupNames(place).filter((name) => name.startsWith(this.nameOf('')));
    for (const name of own) if (!kept.has(name)) removeGroup(runGroup(place, name));
  }

  private nameOf(run: string): string {
    return `${this.config.stateId}.${run}`;
  }

  private find(): CgroupPlace | null {
    if (this.place !== undefined) return this.place;
    const own = cgroupFolder('self');
    try {
      this.place = own === null ? null : cgroupPlace(own);
    } catch {
      this.place = null;
    }
    return this.place;
  }
}
