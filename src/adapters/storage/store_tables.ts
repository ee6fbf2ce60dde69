// The tables of the embedded store, and the store as its users see it.
import type { StoredSession } from '../../protocol/agent_sessions.ts';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import type { StoredOperation } from '../../protocol/cloud_operations.ts';
import type { WatchPosition } from '../../protocol/cloud_watches.ts';
import type { SealedSecret, StoredCluster } from '../../protocol/clusters.ts';
import type { StoredDoor } from '../../protocol/doors.ts';
import type { EventCheckpoint } from '../../protocol/events.ts';
import type { StoredGrant } from '../../protocol/grants.ts';
import type { StoredGroupCall, StoredOverride } from '../../protocol/groups.ts';
import type { StoredNotice, StoredRule } from '../../protocol/notices.ts';
import type { StoredPolicy } from '../../protocol/policies.ts';
import type { StoredToken } from '../../protocol/principals.ts';
import type { StoredSavings } from '../../protocol/savings.ts';
import type { StoredSchedule } from '../../protocol/schedules.ts';
import type { LastEnd, StoredService } from '../../protocol/service.ts';
import type { StoredStack } from '../../protocol/stacks.ts';
import type { StoredTether } from '../../protocol/tethers.ts';
import type { Failure } from '../../runtime/actor.ts';

/** Every table with the type of its rows. The keys are names and ids. */
export interface StoreTables {
  /** The environment is sealed: see sealed_environment.ts. */
  services: StoredService;
  /** The end of the last process of each service. */
  ends: LastEnd;
  /** The doors that are open, by the name of their service. */
  doors: StoredDoor;
  /** The conversations of agents, by the name of their agent. */
  sessions: StoredSession;
  stacks: StoredStack;
  /** The restarts of groups that are under way, by the name of their group. */
  restarts: StoredGroupCall;
  /** The members, by name, that a client has stopped or put to sleep while their group was being started. */
  overrides: StoredOverride;
  /** The schedule of each task that has one. */
  schedules: StoredSchedule;
  /** Notices that are not delivered yet, by id. */
  notices: StoredNotice;
  /** One row, `notices`: the rules of notices. */
  rules: StoredRule[];
  /** One row, `notices`: the last event that `notices` has a notice of. */
  positions: number;
  /** Secrets of this state directory. */
  keys: Uint8Array;
  /** One row, `events`. */
  marks: EventCheckpoint;
  /** The cloud part (embedded_cloud.ts), by id. */
  clusters: StoredCluster;
  workloads: StoredWorkload;
  /** By the id of their cluster, kind and namespace. */
  watches: WatchPosition;
  /** Events that the journal may lack, by their keys. */
  outbox: CommittedCloudEvent;
  /** By cluster, month and namespace. */
  savings: StoredSavings;
  tethers: StoredTether;
  operations: StoredOperation;
  /** By name. */
  policies: StoredPolicy;
  tokens: StoredToken;
  grants: StoredGrant;
  /** One row, `canary`: proves that a key file belongs to this store. */
  vault: SealedSecret;
  /** One row, `format`: the version of this layout. */
  meta: number;
}

export type TableName = keyof StoreTables;

interface TableRules {
  /** Its rows are JSON; the others contain bytes. */
  readonly isText: boolean;
  /** A change of a row may use the reserve of a full disk: docs/reference.md "Full disk". */
  readonly isEssential: boolean;
  /**
   * Rows of the copy are used: by a restore, and for damaged rows. Not where an older row would repeat what
   * is over, such as an operation or the call of a group. store_copy.ts leaves out parts of `ends`.
   */
  readonly isRestored: boolean;
}

/** The rules of each table. A removal is essential in every table. */
export const TABLES: { readonly [N in TableName]: TableRules } = {
  services: { isText: true, isEssential: false, isRestored: true },
  ends: { isText: true, isEssential: true, isRestored: true },
  doors: { isText: true, isEssential: true, isRestored: false },
  sessions: { isText: true, isEssential: true, isRestored: true },
  stacks: { isText: true, isEssential: false, isRestored: true },
  restarts: { isText: true, isEssential: true, isRestored: false },
  overrides: { isText: true, isEssential: true, isRestored: false },
  schedules: { isText: true, isEssential: true, isRestored: false },
  notices: { isText: true, isEssential: true, isRestored: true },
  rules: { isText: true, isEssential: true, isRestored: true },
  positions: { isText: true, isEssential: true, isRestored: false },
  keys: { isText: false, isEssential: false, isRestored: true },
  marks: { isText: true, isEssential: true, isRestored: true },
  clusters: { isText: false, isEssential: false, isRestored: true },
  workloads: { isText: true, isEssential: false, isRestored: true },
  watches: { isText: true, isEssential: false, isRestored: false },
  outbox: { isText: true, isEssential: false, isRestored: true },
  savings: { isText: true, isEssential: false, isRestored: true },
  tethers: { isText: true, isEssential: false, isRestored: true },
  operations: { isText: true, isEssential: false, isRestored: false },
  policies: { isText: true, isEssential: false, isRestored: true },
  tokens: { isText: true, isEssential: false, isRestored: true },
  grants: { isText: true, isEssential: false, isRestored: true },
  vault: { isText: false, isEssential: false, isRestored: true },
  meta: { isText: false, isEssential: false, isRestored: false },
};

export const TABLE_NAMES = Object.keys(TABLES) as TableName[];

/** A row as stored on disk: see row_codec.ts. */
export interface EncodedRow {
  table: TableName;
  key: string;
  bytes: Uint8Array;
}

export interface StoreTable<V> {
  /** The row as last committed by any thread. */
  get(key: string): V | undefined;
  /** Every row, ordered by key. */
  all(): [key: string, value: V][];
  /**
   * Resolves when the row is on disk. Changes requested in one turn, to any tables, form one commit: all are
   * made or none. Fails storage_full; the store is then unchanged. Fails storage_lost when the file has been
   * removed, replaced or truncated.
   */
  put(key: string, value: V): Promise<void>;
  remove(key: string): Promise<void>;
}

export interface Store {
  /** The version of the layout of the file. */
  readonly format: number;
  table<N extends TableName>(name: N): StoreTable<StoreTables[N]>;
  /**
   * The rows of `table` whose keys begin with `prefix`, ordered by key, a part at a time: the thread serves
   * messages in between. A row that changes meanwhile is read as before or after the change.
   */
  parts<N extends TableName>(table: N, prefix: string): AsyncIterable<[key: string, value: StoreTables[N]][]>;
  /** Every row for a copy, except damaged ones that are set aside. */
  rows(): Iterable<EncodedRow>;
  /** Writes `rows` in one commit. Fails as `put` does. */
  load(rows: readonly EncodedRow[]): Promise<void>;
  /** Grows with each commit of any thread. */
  version(): number;
  /** The failure storage_lost of every change if the file was removed, replaced or truncated; else null. */
  loss(): Failure | null;
  /**
   * Resolves when every requested change has been committed or has failed, and this thread has closed the
   * file.
   */
  close(): Promise<void>;
}
