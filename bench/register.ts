// Registrations over HTTP on a real daemon, each answered once it is on disk. The floor of single
// registrations is a bare write and fdatasync of as many bytes; the floor of 500 at once is as many reads,
// answered from memory.
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { daemonRequester, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, compare, type Row, throughput } from './kit/harness.ts';

const TURN_MS = 400;
const AT_ONCE = 500;

/** Registers `service-<n>`, each with a new command: an identical registration changes nothing on disk. */
function registrations(): (n: number) => object {
  let count = 0;
  return (n) => {
    count += 1;
    return { name: `service-${n}`, port: 20_000 + n, cmd: `exec sleep ${count}`, cwd: '/tmp' };
  };
}

/** Calls `once` for all numbers at once; returns calls per second. */
const burst = (once: (n: number) => Promise<unknown>) => async (): Promise<number> => {
  const begin = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => once(n)));
  return AT_ONCE / ((performance.now() - begin) / 1_000);
};

async function run(folder: string): Promise<Row[]> {
  const daemon = await startDaemon(folder);
  const { ask, close } = daemonRequester(daemon.port, AT_ONCE);
  const file = openSync(join(folder, 'floor'), 'w', 0o600);
  const next = registrations();
  const register = (n: number) => ask('POST', '/v1/services', next(n));
  const writeToDisk = async (): Promise<void> => {
    writeSync(file, JSON.stringify(next(0)));
    fdatasyncSync(file);
  };
  try {
    const single = await compare('one at a time', 'registrations/s', {
      floor: () => throughput(writeToDisk, 1, TURN_MS),
      subject: () => throughput(() => register(0), 1, TURN_MS),
    });
    await burst(register)();
    const together = await compare(`${AT_ONCE} at once`, 'registrations/s', {
      floor: burst((n) => ask('GET', `/v1/services/service-${n}`)),
      subject: burst(register),
    });
    return [single, together];
  } finally {
    close();
    closeSync(file);
    await daemon.end();
  }
}

export const register: Benchmark = {
  name: 'register',
  question: 'How long does a durable registration take, alone and 500 at once?',
  run: () => withFolder(run),
};
