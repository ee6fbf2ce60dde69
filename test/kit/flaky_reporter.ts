// A reporter for CI: fails the run for every test that passed only on its second try, and names it with the
// error of its first. A flaky test is broken.
import type { Reporter, TestCase } from 'vitest/node';

/** Kept of an error: states that a wait saw can be long. */
const ERROR_CHARS = 4_000;

export default class Flaky implements Reporter {
  private readonly found: string[] = [];

  onTestCaseResult(test: TestCase): void {
    if (!test.diagnostic()?.flaky) return;
    const errors = test.result().errors?.map(({ message }) => `\n  ${message.slice(0, ERROR_CHARS)}`) ?? [];
    this.found.push(`${test.module.relativeModuleId}: ${test.fullName}${errors.join('')}`);
  }

  onTestRunEnd(): void {
    for (const name of this.found) console.log(`flaky: ${name}`);
    if (this.found.length > 0) process.exitCode = 1;
  }
}
