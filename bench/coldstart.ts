// The time from the spawn of the daemon to its line 'listening', on a new state directory and on one that has
// services. The floor is the whole run of a Node process that does nothing.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PLAIN_ENVIRONMENT, registerMany, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, cost, type Row } from './kit/harness.ts';

const SERVICES = 100;

async function nothing(): Promise<number> {
  const began = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', env: PLAIN_ENVIRONMENT }), 'exit');
  return performance.now() - began;
}

async function startIn(folder: string): Promise<number> {
  const daemon = await startDaemon(folder);
  await daemon.end();
  return daemon.startMs;
}

async function run(): Promise<Row[]> {
  const first = await cost('the first time', 'ms', {
    floor: nothing,
    subject: () => withFolder(startIn),
    turns: 15,
  });
  const again = await withFolder(async (folder) => {
    const daemon = await startDaemon(folder);
    await registerMany(daemon, SERVICES).finally(daemon.end);
    return cost(`again, with ${SERVICES} services`, 'ms', {
      floor: nothing,
      subject: () => startIn(folder),
      turns: 15,
    });
  });
  return [first, again];
}

export const coldstart: Benchmark = {
  name: 'coldstart',
  question: 'How long does the daemon take to listen, next to a Node that does nothing?',
  run,
};
