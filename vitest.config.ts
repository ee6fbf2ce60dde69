import { configDefaults, defineConfig } from 'vitest/config';

/** What `npm test` leaves to `npm run test:all`: kills, full disks, hangs, floods, browsers, whole daemons. */
const LONG = [
  'test/e2e/**',
  'test/**/hostile*.test.ts',
  'test/actors/cloud/crash.test.ts',
  'test/actors/with_process_host.test.ts',
  'test/cli/commands/**',
  'test/cli/ui/terminal.test.ts',
  'test/actors/gateway/leaks.test.ts',
  'test/host/survival.test.ts',
];

/**
 * What packs and installs takes half a minute: only .ci/run asks for it. Control groups of version 2 need a machine
 * of their own: test/kit/cgroup_machine.sh.
 */
const KIND = process.env['BERTH_TEST_INSTALL']
  ? 'install'
  : process.env['BERTH_TEST_CGROUP']
    ? 'cgroup'
    : 'test';

export default defineConfig({
  test: {
    include: [`test/**/*.${KIND}.ts`],
    exclude: [...configDefaults.exclude, ...(process.env['BERTH_TEST_QUICK'] ? LONG : [])],
    pool: 'forks',
    // Tests wait for real daemons a third of the time, so on two cores three files at once are fastest.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    // A poll waits for what happens, as every other wait does: its default of 1 s is a while.
    expect: { poll: { timeout: 25_000 } },
    // In CI a failed test is retried once. If it then passes, test/kit/flaky_reporter.ts names it as flaky, which
    // fails the run all the same: the list tells a broken test from a broken change.
    retry: process.env['CI'] ? 1 : 0,
  },
});
