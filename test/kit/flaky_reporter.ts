// A reporter for CI: names every test that passed only at its second try. Such a test is broken, but not what
// was submitted.
import type { Reporter, TestCase } from 'vitest/node';

export default class Flaky implements Reporter {
  private readonly found: string[] = [];

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky) this.found.push(`${test.module.relativeModuleId}: ${test.fullName}`);
  }

  onTestRunEnd(): void {
    for (const name of this.found) console.log(`flaky: ${name}`);
  }
}
