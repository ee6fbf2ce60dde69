// The list and watch that never give up, against a server with every fault; the test drives the clock where
// they wait.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type KubeCluster,
  openKubeCluster,
  workloadsResource,
} from '../../../src/adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../../src/adapters/kube/kube_errors.ts';
import { listAndWatch } from '../../../src/adapters/kube/list_watch.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { realTime, type TestClock, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Double, kubeDouble, type OpenWatch, type Seen, workload } from '../../kit/kube_double.ts';

const deployments = workloadsResource('Deployment');

let double: Double;
let cluster: KubeCluster;
let clock: TestClock;
/** Pending timers, with their milliseconds. */
let timers: Map<() => void, number>;
let stop: AbortController;
let ended: Promise<void>;
/** What was reported to the follower, one line each. */
let reports: string[];

beforeEach(async () => {
  double = await kubeDouble();
  double.put('Deployment', workload('web', 'a', 1));
  cluster = openKubeCluster(double.access, { allow: 'any', apiOnLoopback: true }, realTime);
  timers = new Map();
  clock = counted(virtualClock());
  stop = new AbortController();
  reports = [];
});
afterEach(async () => {
  stop.abort();
  await ended;
  expect(timers.size).toBe(0);
  await cluster.close();
  await double.stop();
});

function counted(real: TestClock): TestClock {
  return {
    ...real,
    after(ms, callback) {
      const cancel = real.after(ms, () => {
        timers.delete(cancel);
        callback();
      });
      timers.set(cancel, ms);
      return () => {
        timers.delete(cancel);
        cancel();
      };
    },
  };
}

function begin(version: string | null = null, isDoubtful = false): void {
  ended = listAndWatch(
    cluster,
    deployments,
    version === null ? null : { version, isDoubtful },
    {
      onListed: (rows) =>
        reports.push(`listed ${rows.map((row) => `${row.name}=${row.replicas}`).join(' ')}`),
      onChanged: (row, gone) => reports.push(`${gone ? 'gone' : 'changed'} ${row.name}=${row.replicas}`),
      onHealth: (error) => reports.push(error === null ? 'well' : `ill ${kubeFailure(error).message}`),
    },
    stop.signal,
    { clock, random: () => 0.5 },
  );
}

const saying = (line: string): Promise<boolean> => eventually(() => reports.includes(line));
const opened = (): Promise<OpenWatch> => eventually(() => double.watches[0]);
const lists = (): number => double.requests.filter(isList).length;
const isWatch = ({ query }: Seen): boolean => query.has('watch');
const isList = (request: Seen): boolean => !isWatch(request) && request.query.get('limit') === '500';
const scale = (replicas: number): void =>
  double.change('Deployment', 'web', 'a', (object) => {
    object.spec.replicas = replicas;
  });
/** Advances time in steps until `check` holds: the exact delay does not matter here. */
async function passing<T>(check: () => T | undefined | false, stepMs = 500): Promise<T> {
  return eventually(() => {
    const value = check();
    if (value === undefined || value === false) void clock.advance(stepMs);
    return value;
  });
}

describe('a follower', () => {
  it('lists, then reports every change in order', async () => {
    begin();
    await opened();
    scale(2);
    double.put('Deployment', workload('web', 'b', 3));
    double.remove('Deployment', 'web', 'b');
    await saying('gone b=3');
    expect(reports).toEqual(['well', 'listed a=1', 'changed a=2', 'changed b=3', 'gone b=3']);
  });

  it('continues from the version of an earlier listing', async () => {
    const { version } = await cluster.list(deployments);
    scale(7);
    begin(version);
    await saying('changed a=7');
    expect(lists()).toBe(1);
  });

  it('asks for bookmarks and a bounded watch', async () => {
    begin();
    const { query } = await opened();
    expect(query.get('allowWatchBookmarks')).toBe('true');
    expect(Number(query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300);
    expect(Number(query.get('timeoutSeconds'))).toBeLessThan(600);
  });

  it('reads events cut at any byte, several at once, and one of over a megabyte', async () => {
    double.cut = 7;
    double.put('Deployment', workload('web', 'ünïcode'.replace(/[^a-z]/g, 'x'), 1));
    begin();
    const watch = await opened();
    scale(5);
    await saying('changed a=5');
    double.cut = null;
    double.change('Deployment', 'web', 'a', (object) => {
      object.metadata.annotations.big = '€'.repeat(700_000);
      object.spec.replicas = 6;
    });
    await saying('changed a=6');
    const line = JSON.stringify({
      type: 'MODIFIED',
      object: { ...double.get('Deployment', 'web', 'a'), kind: 'Deployment' },
    });
    watch.write(`${line}\n${line}\n`);
    await eventually(() => reports.filter((row) => row === 'changed a=6').length === 3);
  });

  it('continues where it was after an orderly end', async () => {
    begin();
    (await opened()).end();
    await eventually(() => double.watches.length === 0);
    scale(9);
    await passing(() => reports.includes('changed a=9'));
    expect(lists()).toBe(1);
  });

  it('resumes from a bookmark', async () => {
    begin();
    const watch = await opened();
    double.put('StatefulSet', workload('web', 's', 1));
    watch.bookmark();
    watch.end();
    await eventually(() => double.watches.length === 0);
    const next = await passing(() => double.watches[0]);
    expect(next.query.get('resourceVersion')).toBe('102');
  });

  it.each([
    ['in the stream', (watch: OpenWatch) => watch.error(410, 'Expired')],
    ['at the next watch', (watch: OpenWatch) => watch.end()],
  ])('lists again when its version has expired (%s)', async (_, happen) => {
    begin();
    const watch = await opened();
    watch.stall();
    scale(4);
    double.compact();
    if (_ === 'in the stream') {
      // The stalled watch cannot show it: a fresh one does.
      watch.reset();
      await passing(() => double.watches[0] !== watch && double.watches[0]);
    } else happen(watch);
    await passing(() => reports.includes('listed a=4'));
  });

  it('lists again at a plain 410, but never in a loop when every version is too old', async () => {
    double.fault(isWatch, { kind: 'status', status: 410, reason: 'Expired' }, 5);
    begin();
    await eventually(() => lists() === 2);
    await eventually(() => double.requests.filter(isWatch).length === 2);
    // No time has passed: after the second one it waits, for less than for a silent watch.
    await eventually(() => [...timers.values()].some((ms) => ms < CLOUD.watch.silenceTimeoutMs));
    expect(lists()).toBe(2);
    await passing(() => double.watches[0]);
    expect(lists()).toBe(6);
  });

  it('lists again when the server was restored from a backup', async () => {
    begin();
    const watch = await opened();
    for (let replicas = 2; replicas < 8; replicas += 1) scale(replicas);
    await saying('changed a=7');
    double.rewind(102);
    scale(3);
    watch.reset();
    await passing(() => reports.includes('listed a=3'));
    scale(4);
    await saying('changed a=4');
  });

  it('lists a restored server in the end, though its version has passed that of the watch', async () => {
    begin();
    const watch = await opened();
    scale(2);
    await saying('changed a=2');
    double.rewind(101);
    double.put('Deployment', workload('web', 'b', 3));
    double.put('Deployment', workload('web', 'c', 4));
    watch.reset();
    await passing(() => double.watches[0] && double.watches[0] !== watch);
    await saying('changed c=4');
    expect(lists()).toBe(1);
    await passing(() => reports.includes('listed a=2 b=3 c=4'), 30_000);
    scale(5);
    await saying('changed a=5');
    expect(lists()).toBe(2);
  });

  it('lists once for all outages of a while, and not again after that', async () => {
    const { version } = await cluster.list(deployments);
    begin(version, true);
    for (let outage = 1; outage <= 5; outage += 1) {
      const watch = await passing(() => double.watches[0]);
      const isDue = [...timers.values()].includes(0.55 * CLOUD.watch.maxRelistDelayMs);
      expect([outage, isDue]).toEqual([outage, true]);
      watch.reset();
      await passing(() => double.watches[0] && double.watches[0] !== watch);
    }
    const before = clock.monotonic();
    await passing(() => lists() === 2, 30_000);
    expect(clock.monotonic() - before).toBeLessThan(0.55 * CLOUD.watch.maxRelistDelayMs + 90_000);
    await opened();
    expect([...timers.values()]).not.toContain(0.55 * CLOUD.watch.maxRelistDelayMs);
  });

  it('treats a watch that is silent for 90 s as dead', async () => {
    begin();
    const watch = await opened();
    watch.stall();
    scale(8);
    await clock.advance(89_000);
    expect(double.watches).toContain(watch);
    await clock.advance(1_500);
    await passing(() => reports.includes('changed a=8'));
    expect(lists()).toBe(1);
  });

  it('keeps a watch that sends something now and then, however long it lasts', async () => {
    begin();
    const watch = await opened();
    for (let round = 1; round <= 4; round += 1) {
      await clock.advance(CLOUD.watch.silenceTimeoutMs - 1_000);
      const seen = [...timers.keys()];
      watch.bookmark();
      // The bookmark has arrived when the timer of the silence is another one.
      await eventually(() => [...timers.keys()].some((timer) => !seen.includes(timer)));
    }
    expect(double.watches).toEqual([watch]);
    expect(double.requests.filter(isWatch)).toHaveLength(1);
  });

  it('lists again when the server says that its version is in the future', async () => {
    // The words of a server whose etcd was restored: its reason says nothing of the version.
    const message = 'Too large resource version: 900, current: 100';
    double.fault(isWatch, { kind: 'status', status: 504, reason: 'Timeout', message });
    begin();
    await eventually(() => lists() === 2);
    await opened();
    expect(reports.filter((line) => line.startsWith('ill'))).toEqual([]);
  });

  it('lists periodically while it may not watch, and watches once it may', async () => {
    double.denied.add('watch deployments');
    // Only the pause before the next listing is left: no call is under way.
    const isPausing = () => timers.size === 1 && [...timers.values()][0] === CLOUD.poll.intervalMs;
    begin();
    await saying('listed a=1');
    for (let replicas = 2; replicas < 5; replicas += 1) {
      await eventually(isPausing);
      scale(replicas);
      await clock.advance(CLOUD.poll.intervalMs - 1);
      expect(reports).not.toContain(`listed a=${replicas}`);
      await clock.advance(1);
      await saying(`listed a=${replicas}`);
    }
    await eventually(isPausing);
    double.denied.clear();
    await clock.advance(CLOUD.poll.intervalMs);
    await opened();
    scale(9);
    await saying('changed a=9');
  });

  it.each<[string, () => void]>([
    ['a reset', () => double.watches[0]?.reset()],
    ['an error in the stream', () => double.watches[0]?.error(500, 'InternalError')],
    ['garbage', () => double.watches[0]?.write('{"type":\n')],
  ])('continues after %s', async (_, happen) => {
    begin();
    await opened();
    happen();
    await eventually(() => reports.some((line) => line.startsWith('ill')));
    scale(6);
    await passing(() => reports.includes('changed a=6'));
    expect(reports.at(-2)).toBe('well');
    expect(lists()).toBe(1);
  });

  it('reports at once that the server responds, although the watch has no events', async () => {
    begin();
    (await opened()).reset();
    await eventually(() => reports.some((line) => line.startsWith('ill')));
    await passing(() => reports.at(-1) === 'well');
    expect(lists()).toBe(1);
  });

  it.each([401, 403, 429, 500, 503])('continues after %i, however often', async (status) => {
    double.fault(isWatch, { kind: 'status', status, headers: { 'retry-after': '1' } }, 6);
    begin();
    await passing(() => double.watches[0]);
    scale(2);
    await saying('changed a=2');
    expect(reports.filter((line) => line.startsWith('ill'))).toHaveLength(6);
  });

  it('waits as long as the server requests', async () => {
    double.fault(isWatch, { kind: 'status', status: 429, headers: { 'retry-after': '60' } }, 1);
    begin();
    await eventually(() => reports.some((line) => line.startsWith('ill')));
    await clock.advance(59_000);
    expect(double.watches).toHaveLength(0);
    await clock.advance(2_000);
    await opened();
  });

  it('waits no longer than a minute and its own pause, whatever the server requests', async () => {
    double.fault(isWatch, { kind: 'status', status: 429, headers: { 'retry-after': '86400' } }, 1);
    begin();
    await eventually(() => reports.some((line) => line.startsWith('ill')));
    await clock.advance(59_000);
    expect(double.watches).toHaveLength(0);
    await clock.advance(2_000);
    await opened();
  });

  it('waits longer each time, up to 30 s (half of that here)', async () => {
    double.fault(any, { kind: 'status', status: 500 }, 12);
    let fired = 0;
    const { after } = clock;
    clock.after = (ms, callback) =>
      after(ms, () => {
        fired += 1;
        callback();
      });
    begin();
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 12; attempt += 1) {
      await eventually(() => reports.length === attempt);
      const before = clock.monotonic();
      const known = fired;
      while (fired === known) await clock.advance(250);
      waits.push(clock.monotonic() - before);
      // Time stands still while a request is on its way.
      await eventually(() => double.requests.length > attempt);
    }
    expect(waits[0]).toBeLessThanOrEqual(1_000);
    expect(Math.max(...waits)).toBeGreaterThanOrEqual(15_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(17_000);
  });

  it('survives a server that is unreachable and comes back', async () => {
    begin();
    await opened();
    await double.stop();
    await eventually(() => reports.some((line) => line.startsWith('ill')));
    await passing(() => reports.filter((line) => line.startsWith('ill')).length >= 4);
    scale(3);
    await double.start();
    await passing(() => reports.includes('changed a=3'));
  });

  it('skips unknown events and malformed rows', async () => {
    begin();
    const watch = await opened();
    watch.write(
      '{"type":"SURPRISE","object":{"metadata":{"resourceVersion":"5"}}}\n{"type":"ADDED","object":7}\nnull\n7\n',
    );
    watch.write('{"type":"ADDED","object":{"metadata":{"resourceVersion":"300","name":"../x"}}}\n');
    scale(2);
    await saying('changed a=2');
    expect(reports).toEqual(['well', 'listed a=1', 'changed a=2']);
  });

  it('stops at once in any state', async () => {
    begin();
    await opened();
    stop.abort();
    await ended;
    expect(reports).toEqual(['well', 'listed a=1']);
    stop = new AbortController();
    double.fault(any, { kind: 'stall' }, 9);
    begin();
    stop.abort();
  });

  it('stops when it is told to while it reports a listing', async () => {
    const stopped = listAndWatch(
      cluster,
      deployments,
      null,
      { onListed: () => stop.abort(), onChanged: () => undefined, onHealth: () => undefined },
      stop.signal,
      { clock },
    );
    await stopped;
    expect(double.watches).toHaveLength(0);
  });

  it('ends with an error that its own handler throws', async () => {
    const broken = listAndWatch(
      cluster,
      deployments,
      null,
      {
        onListed: () => {
          throw new TypeError('a defect');
        },
        onChanged: () => undefined,
        onHealth: () => undefined,
      },
      stop.signal,
      { clock },
    );
    await expect(broken).rejects.toThrow('a defect');
  });
});

const any = (): boolean => true;
