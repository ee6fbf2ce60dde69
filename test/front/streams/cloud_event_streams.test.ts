// docs/reference.md "Shared database": the streams of cloud events when the clusters change hands.
import { expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import type { CloudEventRecord, CloudEventsProtocol } from '../../../src/protocol/cloud_events.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { cloudFront, type SseClient, sse, startFront } from '../kit.ts';

const AUTHORIZED = { Authorization: 'Bearer cloud' };
const event = (id: number): CloudEventRecord => ({ id, type: 'cluster.reachable', data: `{"id":${id}}` });
const ids = ({ frames }: SseClient) => frames.flatMap(({ id }) => id ?? []);

async function startWithJournal() {
  const views = new CloudViews();
  const front = await startFront({ cloud: cloudFront({ views }) });
  const journal = await front.stand<CloudEventsProtocol>('cloudevents', {
    subscribe: () => ({ kept: [event(8), event(9)], lastId: 9, completeFrom: 8 }),
    replay: () => ({ events: [event(7)], lookedTo: 7, oldest: 1 }),
  });
  return {
    front,
    views,
    journal,
    loseLease: () => views.markUnavailable('standing_by', 'another Berth has the clusters', '', null),
    follow: (more: Record<string, string> = {}) => sse(front.port, '/k8s/events', { ...AUTHORIZED, ...more }),
  };
}

it('ends with the lease, and is resumed with what other replicas have written', async () => {
  const { front, views, journal, loseLease, follow } = await startWithJournal();
  const before = await follow();
  views.onEvents([event(10)]);
  await before.until(1);
  loseLease();
  await before.closed;
  expect(before.response.complete, 'ended, not cut').toBe(true);
  const refused = await front.request('GET', '/k8s/events', { headers: AUTHORIZED });
  expect([refused.status, refused.body.code]).toEqual([503, 'standing_by']);
  journal.answer({ subscribe: () => ({ kept: [event(20)], lastId: 20, completeFrom: 20 }) });
  journal.answer({ replay: () => ({ events: [event(15)], lookedTo: 20, oldest: 1 }) });
  views.markAvailable();
  const after = await follow({ 'Last-Event-ID': '10' });
  views.onEvents([event(21)]);
  await after.until(2);
  expect(ids(after)).toEqual([15, 21]);
});

it('is refused when the lease is lost before it begins', async () => {
  const { front, journal, loseLease } = await startWithJournal();
  const answer = deferred<never>();
  journal.answer({ subscribe: () => answer.promise });
  const refused = front.request('GET', '/k8s/events', { headers: AUTHORIZED });
  await journal.next('subscribe');
  loseLease();
  answer.reject(fail('daemon_busy', 'the thread has ended'));
  expect(await refused).toMatchObject({ status: 503, body: { code: 'daemon_busy' } });
});

it('ends when the journal fails during a replay', async () => {
  const { journal, follow } = await startWithJournal();
  journal.answer({ replay: () => Promise.reject(fail('daemon_busy', 'the thread has ended')) });
  const stream = await follow({ 'Last-Event-ID': '3' });
  await stream.closed;
  expect(ids(stream)).toEqual([]);
});

it('ends when the lease is lost during a replay', async () => {
  const { journal, loseLease, follow } = await startWithJournal();
  const answer = deferred<void>();
  journal.answer({
    replay: async () => {
      await answer.promise;
      return { events: [event(7)], lookedTo: 9, oldest: 1 };
    },
  });
  const following = follow({ 'Last-Event-ID': '3' });
  await journal.next('replay');
  loseLease();
  answer.resolve();
  const stream = await following;
  await stream.closed;
  expect(ids(stream)).toEqual([7]);
});
