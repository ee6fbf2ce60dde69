// What services used, on disk: docs/reference.md "Statistics". A file per service, beside its log, with a
// ring of points per range. The position of a point follows from its time. So the file needs neither a header
// nor a copy in memory, and survives a killed daemon intact.

import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { USAGE_RANGES, type UsagePoint, type UsageRange } from '../protocol/stats.ts';

/** The number of the step, the cores, the megabytes: each of 4 bytes. */
const POINT_BYTES = 12;
const FILE = 'usage.ring';

const pointBytes = Buffer.alloc(POINT_BYTES);

/** Where the ring of each range begins, in points. */
const STARTS: Readonly<Record<UsageRange, number>> = { hour: 0, day: USAGE_RANGES.hour.points };

/** A point of one range. */
export interface RangedPoint extends UsagePoint {
  range: UsageRange;
}

const placeOf = (range: UsageRange, step: number): number =>
  (STARTS[range] + (step % USAGE_RANGES[range].points)) * POINT_BYTES;

/**
 * Whether the system refused a file: its folder is gone, or the disk is full. History is not worth an error.
 */
const isRefusal = (error: unknown): boolean => error instanceof Error && 'syscall' in error;

/** The usage of every service, in the folder of their logs. */
export class UsageHistory {
  private readonly folder: string;

  /** `folder`: has a folder for each service, which is removed with it. */
  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Stores points. Points that the disk does not accept are lost. Blocks the thread for some 20 µs: the same
   * calls without blocking take ten times the processor time, which 300 services need every 10 s.
   */
  append(name: string, points: readonly RangedPoint[]): void {
    let file: number | undefined;
    try {
      file = openSync(join(this.folder, name, FILE), constants.O_RDWR | constants.O_CREAT, 0o600);
      for (const { range, at, cpu, rssMB } of points) {
        const step = Math.floor(at / USAGE_RANGES[range].stepMs);
        pointBytes.writeUInt32LE(step, 0);
        pointBytes.writeFloatLE(cpu, 4);
        pointBytes.writeFloatLE(rssMB, 8);
        writeSync(file, pointBytes, 0, POINT_BYTES, placeOf(range, step));
      }
    } catch (error) {
      if (!isRefusal(error)) throw error;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** The points of `range` until `now` (milliseconds), the oldest first. */
  async read(name: string, range: UsageRange, now: number): Promise<UsagePoint[]> {
    const { stepMs, points } = USAGE_RANGES[range];
    let bytes: Buffer;
    try {
      bytes = await readFile(join(this.folder, name, FILE));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return [];
    }
    const last = Math.floor(now / stepMs);
    const found: UsagePoint[] = [];
    for (let step = last - points + 1; step <= last; step += 1) {
      const place = placeOf(range, step);
      if (place + POINT_BYTES > bytes.length || bytes.readUInt32LE(place) !== step) continue;
      const cpu = Math.round(bytes.readFloatLE(place + 4) * 1_000) / 1_000;
      found.push({ at: step * stepMs, cpu, rssMB: Math.round(bytes.readFloatLE(place + 8)) });
    }
    return found;
  }
}
