// One thread of this process, as Linux sees it.
import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { TICKS_PER_SECOND } from './process_table.ts';

export interface TaskState {
  /** Processor time that it has used, in milliseconds. */
  cpuMs: number;
  /** Whether it waits for an event, rather than for a processor or a disk, and was not stopped. */
  isAsleep: boolean;
}

/** Fields of /proc/<pid>/stat after the name, which may contain spaces and parentheses. */
const STATE_FIELD = 0;
const USER_TICKS_FIELD = 11;
const SYSTEM_TICKS_FIELD = 12;

/** The system's id of this thread; 0 where the system does not say. */
export function ownTaskId(): number {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')));
  } catch {
    return 0;
  }
}

/** The state of the thread `taskId` of this process; undefined where the system does not say. */
export function taskState(taskId: number): TaskState | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/self/task/${taskId}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[USER_TICKS_FIELD]) + Number(fields[SYSTEM_TICKS_FIELD]);
  return { cpuMs: (ticks * 1_000) / TICKS_PER_SECOND, isAsleep: fields[STATE_FIELD] === 'S' };
}
