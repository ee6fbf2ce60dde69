// A program for durability.test.ts: makes one change of the named kind between two marks on stdout.
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { EventJournal } from '../../../src/adapters/storage/event_journal.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { RunLedger } from '../../../src/host/run_ledger.ts';

const [, , kind, folder = ''] = process.argv;
const mark = (text: string): void => void writeSync(1, `${text}\n`);

async function put(): Promise<void> {
  const store = openStore(join(folder, 'store.mdb'));
  await store.table('keys').put('first', Buffer.alloc(100));
  mark('begin');
  await store.table('keys').put('second', Buffer.alloc(100));
  mark('done');
  await store.close();
}

function journal(): void {
  const events = new EventJournal(folder, 16, 65_536, () => {});
  mark('begin');
  events.write({ lifecycle: ['life\n'], statistics: ['statistics\n'] }, 2);
  events.sync();
  mark('done');
  events.close();
}

function ledger(): void {
  const runs = new RunLedger(join(folder, 'ledger'));
  mark('begin');
  runs.put({
    service: 'web',
    run: 'r1',
    pid: 0,
    startTicks: 0,
    startedAt: 1,
    port: 0,
    pty: false,
    memo: { revision: 1, port: 0, ready: null, passed: false, deadline: null, restarts: 0 },
    boot: 'boot',
    stop: null,
    end: null,
  });
  mark('done');
}

if (kind === 'put') await put();
else if (kind === 'journal') journal();
else ledger();
