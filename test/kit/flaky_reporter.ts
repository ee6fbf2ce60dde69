// A reporter for CI: names every test that passed only on its second try. Such a test is broken; the change
// under test is not.
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
