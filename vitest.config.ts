import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Real daemons share the machine with the tests: more files at once than cores only makes them wait for each other.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    // In CI a test that fails is tried once more, and named by test/kit/flaky_reporter.ts if it passes then: it is broken, not what was submitted.
    retry: process.env['CI'] ? 1 : 0,
  },
});
