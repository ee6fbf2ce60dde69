// The suite with two busy loops beside it, which shows tests that depend on the speed of the machine:
// `npm run test:loaded [-- arguments of vitest]`.
import { spawn } from 'node:child_process';

const LOOPS = 2;
/** A loop ends with this process, however that ends. */
const LOOP = `for (let turn = 0; ; turn += 1) if (turn % 1e8 === 0 && process.ppid !== ${process.pid}) break`;

const loops = Array.from({ length: LOOPS }, () => spawn(process.execPath, ['-e', LOOP], { stdio: 'ignore' }));
const args = ['node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2)];
const suite = spawn(process.execPath, args, { stdio: 'inherit' });
// The terminal signals the suite as well, whose end is awaited.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => suite.kill(signal));
suite.on('exit', (code) => {
  for (const loop of loops) loop.kill('SIGKILL');
  process.exitCode = code ?? 1;
});
