// Keeps a client's stop or sleep of a service while its group is being started or restarted, so that a later
// daemon, which continues the call of the group, does not start the service.
import type { Store } from '../../adapters/storage/store_tables.ts';
import { isForService } from '../../protocol/groups.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';

export class MemberOverride {
  private readonly context: Context;
  private readonly store: Pick<Store, 'table'>;
  private readonly name: string;

  constructor(context: Context, store: Pick<Store, 'table'>, name: string) {
    this.context = context;
    this.store = store;
    this.name = name;
  }

  /** A client stops the service or puts it to sleep. Resolves when that is on disk, or cannot be. */
  async stopped(): Promise<void> {
    const spec = this.store.table('services').get(this.name)?.spec;
    if (!spec) return;
    const calls = this.store.table('restarts').all();
    const starting = calls.filter(([, { verb }]) => verb !== 'stop' && verb !== 'sleep');
    const [group] = starting.find(([name, call]) => isForService(name, call, spec)) ?? [];
    if (group === undefined) return;
    await tolerateFailure(this.store.table('overrides').put(this.name, { group }), () => undefined);
  }

  /** Whether a client has done so during the call that is under way. */
  get isStopped(): boolean {
    return this.store.table('overrides').get(this.name) !== undefined;
  }

  /** A client starts the service. */
  started(): void {
    const rows = this.store.table('overrides');
    if (!rows.get(this.name)) return;
    tolerateFailure(rows.remove(this.name), () => undefined).catch((error: unknown) =>
      this.context.crash(error),
    );
  }
}
