// A deadline on a clock that the test drives.
import { expect, it } from 'vitest';
import { deadlineSignal } from '../../src/adapters/deadline_signal.ts';
import { virtualClock } from '../kit/actors.ts';

it('a deadline signal aborts with a TimeoutError at its time, and not before', async () => {
  const clock = virtualClock();
  const { signal } = deadlineSignal(clock, 100);
  await clock.advance(99);
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' });
});

it('a deadline signal aborts with its parent, also if the parent has aborted before', () => {
  const parent = new AbortController();
  const { signal } = deadlineSignal(virtualClock(), 100, parent.signal);
  parent.abort('gone');
  expect(signal.reason).toBe('gone');
  expect(deadlineSignal(virtualClock(), 100, parent.signal).signal.reason).toBe('gone');
});

it('a deadline signal never aborts once it is cleared', async () => {
  const clock = virtualClock();
  const parent = new AbortController();
  const { signal, clear } = deadlineSignal(clock, 100, parent.signal);
  clear();
  parent.abort();
  await clock.advance(100);
  expect(signal.aborted).toBe(false);
});
