// docs/reference.md "Full disk": the real daemon on a small file system that is filled and emptied under
// load. BERTH_TEST_FULL_DISK_MS is the length of the run; an hour by hand.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../kit/daemon.ts';
import { eventually } from '../kit/eventually.ts';
import { must } from '../kit/must.ts';
import { fillDisk, smallDisk } from '../kit/small_disk.ts';

const LENGTH_MS = Number(process.env['BERTH_TEST_FULL_DISK_MS'] ?? 20_000);
const TOKEN = 'a-cloud-token-of-enough-characters';
const SEED = Number(process.env['BERTH_TEST_SEED'] ?? Date.now() % 2 ** 31);

/** Numbers from a seed. */
function numbers(seed: number): (below: number) => number {
  const values = fc.sample(fc.nat(2 ** 30), { seed, numRuns: 4_096 });
  let at = 0;
  return (below) => {
    at = (at + 1) % values.length;
    return (values[at] ?? 0) % below;
  };
}

/** Registers, starts and stops services until `isOver`; resolves with the acknowledged command of each. */
async function load(daemon: Daemon, isOver: () => boolean, random: (below: number) => number) {
  const acknowledged = new Map<string, Set<string>>();
  const answers = new Map<string, number>();
  const one = async (line: number): Promise<void> => {
    for (let step = 0; !isOver(); step += 1) {
      const name = `s${line}-${random(24)}`;
      const cmd = `exec sleep 1000 # ${step} ${'x'.repeat(random(40_000))}`;
      const count = (what: string, status: number): void => {
        answers.set(`${what} ${status}`, (answers.get(`${what} ${status}`) ?? 0) + 1);
      };
      const registered = await daemon.request('POST', '/v1/services', {
        name,
        port: 0,
        cmd,
        env: { A: 'a' },
      });
      count('register', registered.status);
      if (registered.status === 201) acknowledged.set(name, new Set([cmd]));
      // A change that was refused is not made.
      else if (!acknowledged.has(name)) continue;
      const { status } = await daemon.request('POST', `/v1/services/${name}/start`);
      count('start', status);
      count('read', (await daemon.request('GET', `/v1/services/${name}`)).status);
      count('stop', (await daemon.request('POST', `/v1/services/${name}/stop?grace=0`)).status);
    }
  };
  await Promise.all(Array.from({ length: 4 }, (_, line) => one(line)));
  return { acknowledged, answers };
}

const commandsOf = async (daemon: Daemon): Promise<Map<string, string>> => {
  const { services } = (await daemon.request('GET', '/v1/services')).body;
  const commands = new Map<string, string>();
  for (const { name } of services)
    commands.set(name, (await daemon.request('GET', `/v1/services/${name}`)).body.cmd);
  return commands;
};

it(
  `a disk that fills and empties loses no acknowledged change and ends no daemon (seed ${SEED})`,
  async ({ skip }) => {
    const disk = smallDisk('12m');
    if (disk === undefined) return skip('no right to mount a small file system');
    const random = numbers(SEED);
    const first = await startDaemon({ stateDir: join(disk, 'state') });
    const filler = join(disk, 'filler');
    const until = performance.now() + LENGTH_MS;
    const isOver = (): boolean => performance.now() > until;
    const filling = (async () => {
      while (!isOver()) {
        fillDisk(filler);
        await new Promise((resolve) => setTimeout(resolve, random(800)));
        rmSync(filler);
        await new Promise((resolve) => setTimeout(resolve, random(200)));
      }
      fillDisk(filler);
    })();
    const { acknowledged, answers } = await load(first, isOver, random);
    await filling;
    expect(first.process.exitCode, first.stderr()).toBeNull();
    const statuses = [...answers.keys()].sort();
    for (const answer of ['register 201', 'register 503', 'start 503', 'read 200', 'stop 200'])
      expect(statuses).toContain(answer);
    expect(statuses.filter((answer) => /^(read|stop) (?!200)|50[0-2]/.test(answer))).toEqual([]);
    // Killed and started again on the full disk.
    first.signal('SIGKILL');
    await first.exited;
    const second = await startDaemon({ stateDir: first.stateDir });
    const stored = await commandsOf(second);
    for (const [name, commands] of acknowledged) expect([...commands], name).toContain(stored.get(name));
    // With room again everything goes on by itself.
    rmSync(filler);
    const name = must([...acknowledged.keys()].at(0));
    expect((await second.request('POST', `/v1/services/${name}/start`)).status).toBe(200);
    expect((await second.request('POST', '/v1/services', { name: 'new', port: 0, cmd: 'true' })).status).toBe(
      201,
    );
    second.signal('SIGTERM');
    expect(await second.exited).toMatchObject({ code: 0 });
  },
  LENGTH_MS + 60_000,
);

it('the cloud part is refused while there is no room for its first key, and starts once there is', async ({
  skip,
}) => {
  const disk = smallDisk('12m');
  if (disk === undefined) return skip('no right to mount a small file system');
  const daemon = await startDaemon({ stateDir: join(disk, 'state'), env: { BERTH_CLOUD_TOKEN: TOKEN } });
  const clusters = () =>
    daemon.request('GET', '/k8s/clusters', undefined, { authorization: `Bearer ${TOKEN}` });
  const filler = join(disk, 'filler');
  fillDisk(filler);
  for (let time = 0; time < 2; time += 1)
    expect(await clusters()).toMatchObject({ status: 503, body: { code: 'storage_full' } });
  rmSync(filler);
  const { body } = await eventually(async () => {
    const answer = await clusters();
    return answer.status === 200 && answer;
  });
  expect(body).toEqual([]);
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toMatchObject({ code: 0 });
});
