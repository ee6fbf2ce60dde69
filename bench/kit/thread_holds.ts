// Measures how long the threads of a daemon are blocked. A timer in each thread fires every millisecond and
// measures its own delay. The time for which the thread waited for a processor is subtracted, so that other
// load on the machine does not count.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Shorter blocks are not recorded. */
const LEAST_MS = 0.5;
/** The program of piscina's threads, which may be blocked. */
const JOB_THREAD = 'worker.js';

/** The script that each thread runs first. It imports only Node's own modules, because it is a data URL. */
const PROBE = `
import { appendFileSync, readFileSync } from 'node:fs';
const thread = (process.argv[1] ?? '').split('/').at(-1);
const waitedMs = () => Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[1]) / 1e6;
let [due, waited] = [performance.now() + 1, waitedMs()];
setInterval(() => {
  const [now, waitedNow] = [performance.now(), waitedMs()];
  const ms = now - due - (waitedNow - waited);
  if (ms >= ${LEAST_MS}) appendFileSync(process.env.BERTH_BENCH_HOLDS, JSON.stringify({ thread, at: Date.now(), ms }) + '\\n');
  [due, waited] = [performance.now() + 1, waitedNow];
}, 1).unref();
`;

interface Hold {
  /** The name of its program. */
  thread: string;
  /** Epoch milliseconds. */
  at: number;
  ms: number;
}

export interface ThreadHolds {
  /** Environment of the measured daemon. */
  environment: NodeJS.ProcessEnv;
  /**
   * Runs `work`. Returns the longest time, in milliseconds, for which a thread other than a job thread was
   * blocked meanwhile, or `LEAST_MS` if no block was that long.
   */
  during(work: () => Promise<unknown>): Promise<number>;
}

/** Records the blocks in `folder`. */
export function threadHolds(folder: string): ThreadHolds {
  const path = join(folder, 'holds');
  writeFileSync(path, '');
  return {
    environment: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PROBE)}`,
      BERTH_BENCH_HOLDS: path,
    },
    async during(work) {
      const began = Date.now();
      await work();
      const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
      const holds = lines.map((line): Hold => JSON.parse(line));
      const others = holds.filter(({ thread, at }) => thread !== JOB_THREAD && at >= began);
      return Math.max(LEAST_MS, ...others.map(({ ms }) => ms));
    },
  };
}
