// What a watch has reported waits for its reader, within bounds.
import { expect, it } from 'vitest';
import { WatchFeed } from '../../../src/actors/clusters/watch_feed.ts';
import { settle } from '../../kit/actors.ts';

const event = (version: number) => ({ type: 'bookmark', version: String(version) }) as const;

/** Whether `promise` has settled. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => {
    settled = true;
  });
  await settle();
  return settled;
}

it('a watch whose reader is slow is not read further, until the reader has fetched what waits', async () => {
  const feed = new WatchFeed();
  for (let index = 0; index < 499; index += 1) feed.onEvent(event(index));
  expect(await isSettled(feed.whenReady())).toBe(true);
  feed.onEvent(event(499));
  const ready = feed.whenReady();
  expect(await isSettled(ready)).toBe(false);
  const versions: (string | undefined)[] = [];
  for (let part = 0; part < 5; part += 1) {
    const { events } = await feed.next();
    expect(events.length).toBeLessThanOrEqual(100);
    versions.push(...events.map((one) => one?.version));
  }
  expect(versions).toEqual(Array.from({ length: 500 }, (_, index) => String(index)));
  expect(await isSettled(ready)).toBe(true);
});

it('a watch that is cancelled while it waits for its reader ends', async () => {
  const feed = new WatchFeed();
  for (let index = 0; index < 500; index += 1) feed.onEvent(event(index));
  const ready = feed.whenReady();
  feed.finish(new Error('cancelled'));
  expect(await isSettled(ready)).toBe(true);
  expect(await isSettled(feed.whenReady())).toBe(true);
});

it('a reader gets what arrived before the end, then the reason of the end', async () => {
  const failed = new WatchFeed();
  failed.onEvent(event(1));
  failed.finish(new Error('broken'));
  expect(await failed.next()).toEqual({ events: [event(1)], isEnded: false });
  await expect(failed.next()).rejects.toThrow('broken');
  const ended = new WatchFeed();
  const waiting = ended.next();
  ended.onEvent(null);
  ended.finish(null);
  expect(await waiting).toEqual({ events: [null], isEnded: true });
});
