// Savings as text, in the units that people compare: hours, and hours of GiB.
import type { Savings } from '../client/records.ts';

const HOUR_S = 3_600;
const GIB = 2 ** 30;

/** As in 12.5; whole from 100 on. */
const hoursText = (seconds: number): string => {
  const value = seconds / HOUR_S;
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1);
};

/** The hours of pods, CPU cores and GiB of memory in `row`. */
export const savingsTexts = (
  row: Pick<Savings, 'pod_seconds' | 'cpu_request_core_seconds' | 'memory_request_byte_seconds'>,
): { pods: string; cpu: string; memory: string } => ({
  pods: hoursText(row.pod_seconds),
  cpu: hoursText(row.cpu_request_core_seconds),
  memory: hoursText(row.memory_request_byte_seconds / GIB),
});
