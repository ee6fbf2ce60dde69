// Random runs of the runtime, each from a seed: several nodes in one virtual time, actors that fail, crash,
// end, wait and ask each other, connections that delay their frames and are cut. Every step checks the
// invariants. A failure names its seed; BERTH_SIM_SEED=<seed> runs that one alone.
import { expect, it } from 'vitest';
import { type Outcomes, simulate } from './simulation.ts';

const given = process.env['BERTH_SIM_SEED'];
const SEEDS = given === undefined ? Array.from({ length: 60 }, (_, index) => index + 1) : [Number(given)];

const merge = (into: Outcomes, run: Outcomes) => {
  for (const [what, count] of run) into.set(what, (into.get(what) ?? 0) + count);
};

it('no run breaks an invariant, and together the runs reach every outcome', async () => {
  const seen: Outcomes = new Map();
  for (const seed of SEEDS) merge(seen, (await simulate(seed)).outcomes);
  if (given !== undefined) return;
  for (const outcome of [
    'none',
    'failed',
    'overloaded',
    'deadline',
    'crashed',
    'gone',
    'notified',
    'restarted',
  ]) {
    expect(seen.get(outcome) ?? 0, outcome).toBeGreaterThan(10);
  }
});

it('a seed gives the same run every time', async () => {
  const [first, second] = [await simulate(4711), await simulate(4711)];
  expect(second.trace).toBe(first.trace);
  expect((await simulate(4712)).trace).not.toBe(first.trace);
});
