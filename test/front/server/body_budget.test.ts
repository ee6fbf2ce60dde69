// The memory of bodies that are being received: docs/reference.md "Bodies".
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { BodyBudget } from '../../../src/front/server/body_budget.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { KIB } from '../../../src/settings/limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { SERVERS } from '../kit.ts';
import { HEAD, post, serve, text } from './raw_server.ts';

const LIMITS = { bytes: 1_000, ms: 60_000 };

/** A body of `budget`, and how it ended. */
function receive(budget: BodyBudget) {
  const ended: unknown[] = [];
  const body = budget.receive(
    LIMITS,
    (bytes) => ended.push(Buffer.from(bytes).toString()),
    (failure) => ended.push(failure.code),
  );
  afterThisTest(() => body.cut());
  return { body, ended };
}

describe('a body', () => {
  it('takes memory for what has arrived, and releases it at its end', () => {
    const budget = new BodyBudget(10_000);
    const { body, ended } = receive(budget);
    expect(budget.heldBytes).toBe(0);
    body.add(Buffer.from('abc'));
    expect(budget.heldBytes).toBe(3);
    for (const part of ['d', 'e', 'f', 'g']) body.add(Buffer.from(part));
    expect(budget.heldBytes).toBeLessThanOrEqual(2 * 7);
    body.end();
    expect([ended, budget.heldBytes]).toEqual([['abcdefg'], 0]);
  });

  it('that arrives byte by byte takes no more memory than its length', () => {
    const budget = new BodyBudget(10_000);
    const { body, ended } = receive(budget);
    for (let count = 0; count < LIMITS.bytes; count += 1) body.add(Buffer.from('x'));
    expect(budget.heldBytes).toBe(LIMITS.bytes);
    body.add(Buffer.from('x'));
    expect(budget.heldBytes).toBe(0);
    body.end();
    expect(ended).toEqual(['payload_too_large']);
  });

  it('that is the oldest is dropped when the memory is used up', () => {
    const budget = new BodyBudget(1_000);
    const [slow, quick, last] = [receive(budget), receive(budget), receive(budget)];
    for (const { body } of [slow, quick]) body.add(Buffer.alloc(500, 'a'));
    last.body.add(Buffer.alloc(400, 'b'));
    expect([slow.ended, quick.ended, last.ended]).toEqual([['daemon_busy'], [], []]);
    quick.body.end();
    last.body.end();
    expect([quick.ended, last.ended]).toEqual([['a'.repeat(500)], ['b'.repeat(400)]]);
    expect(budget.heldBytes).toBe(0);
  });
});

describe.each(SERVERS)('%s', (kind) => {
  it('drops slow bodies in favour of those that arrive', async () => {
    const bodies = new BodyBudget(100 * KIB);
    const { port } = await serve(
      kind,
      (x) =>
        void x.readBody({ bytes: 64 * KIB, ms: 60_000 }).then(
          (bytes) => text(x, `${bytes.length}`),
          (error) => x.send(isFailure(error) && error.code === 'daemon_busy' ? 503 : 500, HEAD, 'busy'),
        ),
      { bodies },
    );
    const answers: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      const half = net.connect(port, '127.0.0.1');
      afterThisTest(() => void half.destroy());
      let got = '';
      half.on('data', (part) => {
        got += part.toString('latin1');
      });
      half.on('error', () => {});
      half.on('close', () => answers.push(got.slice(0, 12)));
      half.write(post('/', `Content-Length: ${64 * KIB}\r\n`, 'x'.repeat(20 * KIB)));
    }
    await eventually(() => answers.length >= 15);
    expect(new Set(answers)).toEqual(new Set(['HTTP/1.1 503']));
    expect(bodies.heldBytes).toBeLessThanOrEqual(100 * KIB);
    expect((await send(port, 'POST', '/', { body: 'y'.repeat(60 * KIB) })).text).toBe(`${60 * KIB}`);
  });
});
