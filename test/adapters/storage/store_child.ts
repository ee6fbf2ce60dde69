// A program for store.test.ts: writes to a store as its first argument says.
import { writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { isFailure } from '../../../src/runtime/actor.ts';

const say = (text: string): void => void writeSync(1, `${text}\n`);
const codeOf = (error: unknown): string => (isFailure(error) ? error.code : String(error));

/** Puts rows for ever, several at once, and prints each acknowledged one. */
async function forever(path: string): Promise<void> {
  const keys = openStore(path).table('keys');
  const one = async (line: number): Promise<void> => {
    for (let n = 0; ; n += 1) {
      const key = `${line}-${n}`;
      await keys.put(key, Buffer.from(key.repeat(50)));
      say(key);
    }
  };
  await Promise.all([0, 1, 2, 3].map(one));
}

/** Fills a small disk and then continues with the room there is. */
async function full(path: string): Promise<void> {
  const store = openStore(path);
  const keys = store.table('keys');
  const big = Buffer.alloc(20_000);
  let rows = 0;
  for (;;) {
    const [first, second] = await Promise.allSettled([keys.put(`a${rows}`, big), keys.put(`b${rows}`, big)]);
    if (first.status === 'fulfilled') {
      rows += 1;
      continue;
    }
    say(`first ${codeOf(first.reason)}`);
    if (second.status === 'rejected') say(`second ${codeOf(second.reason)}`);
    break;
  }
  say(`rows ${keys.all().length === rows * 2}`);
  // An end has room in the reserve.
  await store.table('ends').put('web', {
    run: 'r1',
    status: 'stopped',
    exitCode: 0,
    signal: null,
    exitUnknown: false,
    at: 1,
  });
  say('end stored');
  for (let row = 0; row < rows; row += 1) await keys.remove(`a${row}`);
  await keys.put('small', Buffer.from('x'));
  say(`small ${keys.get('small')?.length} of ${keys.all().length === rows + 1}`);
  await store.close();
  say('closed');
}

/** In a thread: makes store after store and lets each grow, commit by commit. */
async function grow(paths: string[]): Promise<void> {
  for (const path of paths) {
    const store = openStore(path);
    const keys = store.table('keys');
    parentPort?.postMessage(path);
    for (let n = 0; n < 20; n += 1) await keys.put(`grow-${n}`, Buffer.alloc(1_000));
    await store.close();
  }
}

/** In a thread: puts `count` rows; with `close` false leaves the store as a terminated thread does. */
async function inThread(): Promise<void> {
  const { path, thread, count, close } = workerData;
  const store = openStore(path);
  const keys = store.table('keys');
  await Promise.all(
    Array.from({ length: count }, (_, n) => keys.put(`${thread}-${n}`, Buffer.from(`${thread}-${n}`))),
  );
  if (close) await store.close();
  else for (let n = 0; n < 50; n += 1) void keys.put(`late-${n}`, Buffer.alloc(4000));
  parentPort?.postMessage('done');
}

const [, , what, path = ''] = process.argv;
if (parentPort) await (workerData.paths ? grow(workerData.paths) : inThread());
else if (what === 'forever') await forever(path);
else if (what === 'full') await full(path);
else await openStore(path).close();
