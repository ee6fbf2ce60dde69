// A reporter for CI: fails the run for every test that passed only on its second try, and names it. A flaky
// test is broken.
import type { Reporter, TestCase } from 'vitest/node';

export default class Flaky implements Reporter {
  private readonly found: string[] = [];

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky) this.found.push(`${test.module.relativeModuleId}: ${test.fullName}`);
  }

  onTestRunEnd(): void {
    for (const name of this.found) console.log(`flaky: ${name}`);
    if (this.found.length > 0) process.exitCode = 1;
  }
}
