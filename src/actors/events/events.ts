// State: the kept events, the last id given, what this turn has appended. Rebuilt from: the journal and its mark in the store.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EventJournal, type JournalLines } from '../../adapters/storage/event_journal.ts';
import type { StoreTable } from '../../adapters/storage/store.ts';
import { isStatistics } from '../../protocol/event_ring.ts';
import type { EventCheckpoint, EventRecord, EventsProtocol, NewEvent } from '../../protocol/events.ts';
import { actor, isFailure } from '../../runtime/actor.ts';
import { EVENTS } from '../../settings/limits.ts';
import { formatJournalLine, parseJournalLine } from './journal_lines.ts';
import { KeptEvents } from './kept_events.ts';

export interface EventsConfig {
  /** The folder of the journal. */
  folder: string;
  marks: StoreTable<EventCheckpoint>;
  /** Which boot of the machine this is; '' where that is not known: then every end but a clean one counts as a crash. */
  boot: string;
  /** Takes a line for the daemon's log. */
  report: (text: string) => void;
  /** Whether `views` has subscribed: it does so once, and a crash of this actor must not end it. */
  subscribed: boolean;
}

const CHECKPOINT_KEY = 'events';
/** So long a mark that could not be stored is not tried again. */
const CHECKPOINT_RETRY_MS = 10_000;

/**
 * What earlier lives left. The journal alone is trusted while the machine is up, because what was written is in the page
 * cache even after kill -9. After another boot, with a line that was never written, or without its files, events may
 * be missing: ids go on above every one that may have been given, and replays from before them count as incomplete.
 */
function restoreEvents(journal: EventJournal, mark: EventCheckpoint | undefined, boot: string) {
  const { lifecycle, statistics } = journal.newest();
  const found = [...lifecycle, ...statistics].map(parseJournalLine);
  const events = found.filter((event) => event !== undefined).sort((a, b) => a.id - b.id);
  const known = events.at(-1)?.id ?? 0;
  const trusted = mark?.boot === boot && boot !== '' && known > 0;
  const completeFrom = mark?.completeFrom ?? 1;
  const lastId = Math.max(
    known,
    completeFrom - 1,
    journal.newestUnwrittenId,
    mark && !trusted ? mark.ahead : 0,
  );
  const lost = lastId > known || events.length < found.length;
  const kept = new KeptEvents(lost ? lastId + 1 : completeFrom);
  for (const event of events) kept.push(event);
  // A mark from before a loss does not say what is missing now: it has to be stored anew.
  return { kept, lastId, mark: lost ? undefined : mark };
}

/** The journal: gives ids, writes before anybody sees, tells the views, and keeps what a replay needs. */
export const eventsActor = actor<EventsProtocol, EventsConfig>(
  'events',
  (context, config) => {
    const { marks, boot } = config;
    const journal = new EventJournal(config.folder, EVENTS.retained, config.report);
    const views = context.ref('views');
    const restored = restoreEvents(journal, marks.get(CHECKPOINT_KEY), boot);
    const { kept } = restored;
    let { lastId, mark } = restored;
    let pending: EventRecord[] = [];
    /** Settles when what is pending has been written. */
    let written: Promise<void> | undefined;
    let reserving: Promise<void> | undefined;
    let retryAt = 0;

    const store = async (ahead: number): Promise<void> => {
      const next = { ahead, boot, completeFrom: kept.completeFrom };
      await marks.put(CHECKPOINT_KEY, next);
      mark = next;
    };

    const isAhead = (id: number): boolean => mark?.boot === boot && mark.ahead >= id;

    /** Moves the mark on. On a full disk the ids go on without it. */
    const reserve = (): Promise<void> => {
      if (context.clock.monotonic() < retryAt) return Promise.resolve();
      reserving ??= store(lastId + EVENTS.reservedIds)
        .catch((error: unknown) => {
          if (!isFailure(error)) throw error;
          retryAt = context.clock.monotonic() + CHECKPOINT_RETRY_MS;
        })
        .finally(() => {
          reserving = undefined;
        });
      return reserving;
    };

    const write = (): void => {
      const events = pending;
      pending = [];
      const lines: JournalLines = { lifecycle: [], statistics: [] };
      for (const event of events) {
        (isStatistics(event) ? lines.statistics : lines.lifecycle).push(formatJournalLine(event));
        kept.push(event);
      }
      journal.write(lines, lastId);
      if (config.subscribed) views.tell('events', { events });
    };

    /** One write for everything that the letters of this turn append. */
    const turn = async (): Promise<void> => {
      await nextTurn();
      if (!isAhead(lastId)) await reserve();
      // After a crash the files are those of the next incarnation.
      if (context.scope.signal.aborted) return;
      written = undefined;
      if (pending.length > 0) write();
      if (!isAhead(lastId + EVENTS.reservedIds / 2)) reserve().catch((error) => context.crash(error));
    };

    const take = ({ type, name, run, data, once }: NewEvent, at: number): void => {
      if (once && run !== null && !kept.claim(run, type)) return;
      lastId += 1;
      pending.push({ id: lastId, type, name, run, at, data });
    };

    context.scope.defer(async () => {
      await reserving;
      if (journal.write({ lifecycle: [], statistics: [] }, lastId)) {
        // With everything on disk the next life needs no gap, whatever happens to the machine.
        journal.sync();
        await store(lastId).catch(() => {});
      }
      journal.close();
    });

    return {
      append({ events }) {
        const at = context.clock.now();
        for (const event of events) take(event, at);
        const answer = { lastId };
        written ??= turn();
        return context.replyLater(written.then(() => answer));
      },
      history({ types, names, since, limit }) {
        const fits = (event: EventRecord): boolean =>
          (types === null || types.includes(event.type)) &&
          (names === null || names.includes(event.name)) &&
          (since === null || event.id > since);
        const events = kept.list().filter(fits);
        return { events: since === null ? events.slice(-limit) : events.slice(0, limit) };
      },
      subscribe() {
        config.subscribed = true;
        // What this turn has appended is told when it is written.
        return { kept: kept.list(), lastId: lastId - pending.length, completeFrom: kept.completeFrom };
      },
    };
  },
  // Every service may report at once, each in a letter of its own.
  { mailbox: 65_536 },
);
