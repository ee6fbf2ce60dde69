// The order in which `up` registers the services of a file: no order of arrival breaks a rule of the daemon.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { registrationRounds } from '../../../src/cli/kit/up_registrations.ts';
import { findDependencyCycle, withDependencies } from '../../../src/protocol/dependency_order.ts';

interface Entry {
  name: string;
  dependsOn: string[];
  port: number | 'auto' | null;
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** Services without a cycle: each depends on ones before it. */
const file: fc.Arbitrary<Entry[]> = fc
  .shuffledSubarray(NAMES, { minLength: 1 })
  .chain((names) => fc.tuple(...names.map((name, index) => entry(name, names.slice(0, index)))));

const entry = (name: string, earlier: string[]): fc.Arbitrary<Entry> =>
  fc.record({
    name: fc.constant(name),
    dependsOn: fc.shuffledSubarray(earlier),
    port: fc.constantFrom<Entry['port']>(8000, 'auto', null),
  });

/** The names that `up` gets; none means all. */
const asked = fc.subarray(NAMES, { maxLength: 2 });

it('the registrations under way, and those before them, never form a cycle, and the last are the file', () => {
  fc.assert(
    fc.property(file, file, asked, (before, now, names) => {
      const chosen = withDependencies(now, names.length > 0 ? names : NAMES);
      const services = now.filter(({ name }) => chosen.has(name));
      const registered = new Map(before.map((one) => [one.name, one]));
      for (const round of registrationRounds(services, registered)) {
        const both = new Map([...registered].map(([name, one]) => [name, [...one.dependsOn]]));
        for (const { name, dependsOn } of round) both.set(name, [...(both.get(name) ?? []), ...dependsOn]);
        const merged = [...both].map(([name, dependsOn]) => ({ name, dependsOn }));
        expect(findDependencyCycle(merged)).toBeUndefined();
        for (const one of round) registered.set(one.name, one);
      }
      for (const service of services) expect(registered.get(service.name)).toEqual(service);
    }),
    { numRuns: 2_000 },
  );
});

it('services with a number are registered before a port is leased for others', () => {
  fc.assert(
    fc.property(file, file, (before, services) => {
      const rounds = registrationRounds(services, new Map(before.map((one) => [one.name, one])));
      const leases = rounds.at(-1) ?? [];
      expect(new Set(leases)).toEqual(new Set(services.filter(({ port }) => port === 'auto')));
    }),
  );
});
