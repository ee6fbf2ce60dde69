// The figures of one run and its machine: the content of last.json.
import { cpus, totalmem } from 'node:os';
import type { Row } from './harness.ts';

const GIB = 2 ** 30;

interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  node: string;
}

export interface Run {
  machine: Machine;
  /** The day and the rows of each benchmark. */
  results: Record<string, { at: string; rows: readonly Row[] }>;
}

/** Describes the machine without its host name. */
const machine = (): Machine => ({
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / GIB),
  node: process.version,
});

/** Describes the run that has just ended. */
export function runOf(results: ReadonlyMap<string, readonly Row[]>): Run {
  const at = new Date().toISOString().slice(0, 10);
  return {
    machine: machine(),
    results: Object.fromEntries([...results].map(([name, rows]) => [name, { at, rows }])),
  };
}
