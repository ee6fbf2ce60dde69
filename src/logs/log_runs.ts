// Finds runs in the index of a log.
import { decodeIndexRecord, decodeRunMark, RECORD_BYTES } from './format.ts';
import { describeBlock, LogFiles, marksBefore, recordsBackwards } from './log_blocks.ts';

const NO_BYTES = Buffer.alloc(0);

/** The run of a mark or of output; null: the record is neither. */
function runOfRecord(records: Buffer, at: number): string | null {
  const { stream, run } = decodeIndexRecord(records, at);
  return stream === 0 ? (decodeRunMark(records, at)?.run ?? null) : run;
}

/** The id of the run selected by `choice` (`isRunChoice`) in the log in `folder`; null if there is none. */
export function findRun(folder: string, choice: string): string | null {
  if (choice.length === 16) return choice;
  const wanted = choice === 'last' ? 1 : Number(choice);
  const files = new LogFiles(folder);
  const seen = new Set<string>();
  try {
    for (const records of recordsBackwards(files)) {
      for (let at = records.length - RECORD_BYTES; at >= 0; at -= RECORD_BYTES) {
        const run = runOfRecord(records, at);
        if (run !== null) seen.add(run);
        if (run !== null && seen.size === wanted) return run;
      }
    }
    return null;
  } finally {
    files.close();
  }
}

/** The number of marks of other runs at `offset` before the first one of the run `id`, which begins there. */
export function marksBeforeRun(files: LogFiles, offset: number, id: string): number {
  const pair = files.pairFrom(offset);
  if (!pair) return 0;
  const { marks } = describeBlock(pair, offset, NO_BYTES);
  const all = offset === pair.start ? [...marksBefore(files, pair), ...marks] : marks;
  return Math.max(
    0,
    all.findIndex(({ run }) => run === id),
  );
}

/** After this many records of other runs, the run is assumed to begin there. */
const MAX_OTHER_RECORDS = 4_096;

/** The logical offset at which the run `id` begins; the end of the log if it has no output of it. */
export function startOfRun(files: LogFiles, id: string): number {
  let start = files.end;
  let others = 0;
  for (const records of recordsBackwards(files)) {
    for (let at = records.length - RECORD_BYTES; at >= 0; at -= RECORD_BYTES) {
      const run = runOfRecord(records, at);
      if (run === id) {
        start = decodeIndexRecord(records, at).offset;
        others = 0;
      } else others += 1;
      if (start < files.end && others > MAX_OTHER_RECORDS) return start;
    }
  }
  return start;
}
