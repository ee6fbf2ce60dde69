// The audit log of the cloud: the cost of a change that is stored before it is made and reported before its
// response, next to as many bare writes to the disk; and the replay of 10,000 events, next to reading their
// file.
import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { cloudEventJson } from '../src/protocol/cloud_events.ts';
import { withCloud, withDouble } from './cloud.ts';
import { type Daemon, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, cost, median, type Row } from './kit/harness.ts';

const CHANGES = 200;
const EVENTS = 10_000;
const TURNS = 5;
/** The operation, the change itself, the end of the operation, the event. */
const WRITES = 4;
const LINE = `${'x'.repeat(400)}\n`;

const timed = async (work: () => unknown): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

async function medianOf(work: () => unknown): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < CHANGES; turn += 1) times.push(await timed(work));
  return median(times);
}

const changeRow = (kubeconfig: string): Promise<Row> =>
  withCloud(async (_daemon, ask) => {
    const { id } = await ask('POST', '/k8s/clusters', { name: 'bench', kubeconfig });
    await ask('POST', `/k8s/clusters/${id}/sync`);
    const [first] = await ask('GET', '/k8s/workloads');
    let minutes = 1;
    const change = () => {
      minutes = (minutes % 1_000) + 1;
      return ask('PATCH', `/k8s/workloads/${first.id}/auto-sleep`, { idle_timeout_minutes: minutes });
    };
    return withFolder(async (folder) => {
      const fd = openSync(join(folder, 'floor'), 'w');
      const write = (): void => {
        for (let count = 0; count < WRITES; count += 1) {
          writeSync(fd, LINE);
          fdatasyncSync(fd);
        }
      };
      const sides = { floor: () => medianOf(write), subject: () => medianOf(change), turns: TURNS };
      const row = await cost('change with its audit', 'ms', sides);
      closeSync(fd);
      return row;
    });
  });

/** Reads the stream until the last event has arrived. */
function replay({ port }: Daemon, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}` };
    const sent = http.get(
      { host: '127.0.0.1', port, path: '/k8s/events?after=0', headers, agent: false },
      (answer) => {
        let tail = '';
        answer.setEncoding('utf8');
        answer.on('data', (text: string) => {
          tail = (tail + text).slice(-2_000);
          if (!tail.includes(`id: ${EVENTS}\n`)) return;
          sent.destroy();
          resolve();
        });
      },
    );
    sent.on('error', reject);
  });
}

const replayRow = (): Promise<Row> =>
  withFolder(async (folder) => {
    const events = join(folder, 'state', 'cloud-events');
    mkdirSync(events, { recursive: true, mode: 0o700 });
    const file = join(events, `events-${'1'.padStart(16, '0')}.jsonl`);
    const lines = Array.from({ length: EVENTS }, (_, index) =>
      cloudEventJson(index + 1, Date.now(), {
        ...{ type: 'workload.asleep', cluster: 'bench', namespace: 'web', workload: `hello-${index}` },
        reason: 'put to sleep by auto-sleep',
      }),
    );
    writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
    const daemon = await startDaemon(folder);
    try {
      const token = readFileSync(join(folder, 'state', 'cloud-token'), 'utf8').trim();
      return await cost('replay of 10,000 events', 'ms', {
        floor: () => timed(() => readFileSync(file, 'utf8').split('\n').length),
        subject: () => timed(() => replay(daemon, token)),
        turns: TURNS,
      });
    } finally {
      await daemon.end();
    }
  });

export const audit: Benchmark = {
  name: 'audit',
  question: 'What does a change of the cloud cost with its audit, and what the replay of 10,000 events?',
  run: async () => [await withDouble(10, changeRow), await replayRow()],
};
