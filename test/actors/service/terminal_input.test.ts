import { expect, it } from 'vitest';
import { TerminalInput } from '../../../src/actors/service/terminal_input.ts';
import { AGENT } from '../../../src/settings/agent_limits.ts';
import { settle } from '../../kit/actors.ts';

function stage() {
  const written: string[] = [];
  const taken: string[] = [];
  let release = (_isTaken: boolean): void => undefined;
  const input = new TerminalInput({
    write: (data) => {
      written.push(data.length > 9 ? `${data.length} bytes` : Buffer.from(data).toString());
      return new Promise((resolve) => {
        release = resolve;
      });
    },
    onTaken: (viewer) => taken.push(viewer),
  });
  const next = async (isTaken = true): Promise<void> => {
    release(isTaken);
    await settle();
  };
  return { input, written, taken, next };
}

it('input is sent one message at a time, in the order of all viewers, with what a viewer typed before it left', async () => {
  const { input, written, taken, next } = stage();
  input.add('one', Buffer.from('ls'));
  input.add('two', Buffer.from('pwd'));
  input.add('one', Buffer.from('ls'));
  input.leave('one');
  expect([written, taken]).toEqual([['ls'], []]);
  await next();
  expect([written, taken]).toEqual([['ls', 'pwd'], ['one']]);
  await next();
  await next();
  expect([written, taken]).toEqual([
    ['ls', 'pwd', 'ls'],
    ['one', 'two', 'one'],
  ]);
  input.add('two', Buffer.from('later'));
  expect(written.at(-1)).toBe('later');
});

it('input that is lost with the terminal is not reported as taken', async () => {
  const { input, written, taken, next } = stage();
  input.add('one', Buffer.from('read'));
  input.add('one', Buffer.from('lost'));
  const typed = input.type(Buffer.from('keys'));
  await next();
  await next(false);
  expect([written, taken]).toEqual([['read', 'lost', 'keys'], ['one']]);
  // A client that is not attached is answered in any case.
  await next(false);
  expect(await typed).toBe(undefined);
});

it('input of viewers that come and go is limited to that of one viewer while nothing is read', async () => {
  const { input, written, next } = stage();
  input.add('first', Buffer.from('first'));
  for (let count = 0; count < 10; count += 1) {
    input.add(`gone ${count}`, Buffer.alloc(AGENT.maxUnacknowledgedBytes));
    input.leave(`gone ${count}`);
  }
  input.add('last', Buffer.from('last'));
  await next();
  await next();
  expect(written).toEqual(['first', `${AGENT.maxUnacknowledgedBytes} bytes`, 'last']);
});
