import { expect, it } from 'vitest';
import { takeOverSignal } from '../../../src/cli/kit/take_over_signal.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

it('a signal that has arrived before is handled by who takes it over, and by nobody else', async () => {
  const handled: string[] = [];
  const before = (): void => void handled.push('before');
  process.on('SIGUSR2', before);
  afterThisTest(() => void process.off('SIGUSR2', before));
  process.kill(process.pid, 'SIGUSR2');
  const release = takeOverSignal('SIGUSR2', () => handled.push('after'));
  afterThisTest(release);
  await eventually(() => handled.length > 0);
  process.kill(process.pid, 'SIGUSR2');
  await eventually(() => handled.length > 1);
  expect(handled).toEqual(['after', 'after']);
});
