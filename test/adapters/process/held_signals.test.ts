// Signals during work that must not be cut off: held_signals.ts, in a process of its own.
import { expect, it } from 'vitest';
import { bundle } from '../../kit/bundle.ts';
import { run } from '../../kit/child_program.ts';

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s ends the process after the work, and not within it',
  async (signal) => {
    const module = await bundle('src/adapters/process/held_signals.ts');
    const script = `
    const { holdSignals } = await import(${JSON.stringify(module)});
    process.on('${signal}', () => { console.log('signalled'); process.exit(7); });
    await holdSignals(async () => {
      console.log('begun');
      process.kill(process.pid, '${signal}');
      // A signal is handled before a timer that was set after it.
      await new Promise((resolve) => setTimeout(resolve, 100));
      console.log('done');
    });
    setInterval(() => undefined, 1_000);
  `;
    const program = run(process.execPath, ['--input-type=module', '-e', script]);
    expect(await program.exited).toEqual({ code: 7, signal: null });
    expect(program.lines).toEqual(['begun', 'done', 'signalled']);
  },
);

it('leaves a signal to those who have taken it over meanwhile', async () => {
  const module = await bundle('src/adapters/process/held_signals.ts');
  const script = `
    const { holdSignals } = await import(${JSON.stringify(module)});
    process.on('SIGINT', () => console.log('earlier'));
    await holdSignals(async () => {
      process.removeAllListeners('SIGINT');
      process.on('SIGINT', () => { console.log('later'); process.exit(0); });
    });
    process.kill(process.pid, 'SIGINT');
    setInterval(() => undefined, 1_000);
  `;
  const program = run(process.execPath, ['--input-type=module', '-e', script]);
  await program.exited;
  expect(program.lines).toEqual(['later']);
});
