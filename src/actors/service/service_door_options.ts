// What the door of a service needs from the rest of it.
import type { StoreTable } from '../../adapters/storage/store_tables.ts';
import type { StoredDoor } from '../../protocol/doors.ts';
import type { StopReply } from '../../protocol/service.ts';
import type { Context } from '../../runtime/actor.ts';
import type { ServiceEffects } from './effects.ts';
import type { Known } from './reconcile.ts';

/** The last wake for a waiting client, which has failed. */
export interface FailedWake {
  reason: string;
  /** Epoch milliseconds. */
  at: number;
}

export interface ServiceDoorOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  table: StoreTable<StoredDoor>;
  /** The ports that services behind a door get. */
  ports: readonly [from: number, to: number];
  /** What is known of the service. */
  known: () => Known;
  /** Ends the process and cancels any restart. */
  stop: () => Promise<StopReply>;
  /** The row in the views must be sent again. */
  onChanged: () => void;
}
