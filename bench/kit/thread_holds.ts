// How long the threads of a daemon are held. A probe in each thread looks every millisecond how much later
// than that it comes, less the time for which the thread had to wait for a processor: so the figure is the
// thread's own, on a busy machine too.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Shorter holds are not noted. */
const LEAST_MS = 0.5;
/** The program of piscina's threads, which are there to be held. */
const JOB_THREAD = 'worker.js';

/** What each thread runs before anything else. Only Node's own modules: it is a URL of its own text. */
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
  /** Its program. */
  thread: string;
  /** Epoch milliseconds. */
  at: number;
  ms: number;
}

export interface ThreadHolds {
  /** For the daemon that is measured. */
  environment: NodeJS.ProcessEnv;
  /**
   * The longest hold, in milliseconds, of any thread but the job threads while `work` is under way; at least
   * the shortest that is noted.
   */
  during(work: () => Promise<unknown>): Promise<number>;
}

/** Notes the holds in `folder`. */
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
