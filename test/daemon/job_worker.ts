// A pool whose jobs do what their input says.
import { serveJobs } from '../../src/daemon/job_pool.ts';
import { fail } from '../../src/protocol/errors.ts';

export default serveJobs({
  hashInputs: () => 'hash',
  loadRules: async ({ folders: [module] }) => {
    await import(module);
    return { sets: [], faults: [] };
  },
  readState: async () => ({
    screen: null,
    beside: null,
    question: [],
    isBlank: true,
    snapshot: null,
    ...{ cols: 80, rows: 24, undrawnBytes: 0, isCut: false },
    title: '',
    ms: 0,
  }),
  parseKubeconfig: ({ upload, now }) => {
    if (upload === 'spin') for (;;);
    if (upload === 'defect') throw new TypeError('a defect');
    if (upload === 'exit') process.exit(3);
    if (upload === 'memory') for (const hoard: number[][] = []; ; ) hoard.push(new Array(100_000).fill(now));
    if (upload === 'failure')
      throw fail('invalid_spec', 'as asked', { details: [{ path: 'a', message: 'b' }] });
    return {
      server: upload,
      ca: null,
      tlsServerName: null,
      credential: { kind: 'token', token: String(now) },
    };
  },
  startMergedLogs: async () => [],
  readMergedLogs: async () => ({ frames: Buffer.alloc(0), moved: [], unfinished: [] }),
  readScreen: async () => {
    throw fail('internal', 'not asked for');
  },
  searchLogs: async () => ({ entries: [], taken: [], bound: null }),
  drawScreen: async ({ bytes }) => {
    if (Buffer.from(bytes).toString() === 'spin') for (;;);
    return { screen: null, drawnBytes: bytes.length };
  },
});
