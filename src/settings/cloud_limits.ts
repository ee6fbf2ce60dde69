// The limits of clusters, workloads and tethers; limits.ts has all others.
import { KIB, MIB } from './limits.ts';

/** Clusters and workloads: docs/reference.md "Cloud". */
export const CLOUD = {
  maxNameLength: 128,
  maxProviderLength: 64,
  maxYamlDepth: 20,
  maxTokenBytes: 16 * KIB,
  maxCaCertificates: 20,
  minRsaBits: 2_048,
  /** For a connect and its TLS handshake. */
  dialTimeoutMs: 10_000,
  /** Idle time after which the kernel probes a connection, once a second; ten lost probes end it. */
  keepAliveDelayMs: 5_000,
  headersTimeoutMs: 10_000,
  /** For a whole call with its body, unless it is a listing. */
  callTimeoutMs: 20_000,
  listTimeoutMs: 60_000,
  /** For a change: an admission webhook has up to 30 s to answer. */
  changeTimeoutMs: 40_000,
  /** The longest wait of a client for a sync; the sync itself continues. */
  syncTimeoutMs: 120_000,
  /** For a sleep or a wake, retries included. */
  scaleTimeoutMs: 120_000,
  /** Wait of `?wait=true` for a Ready pod when `timeout` is absent. */
  defaultWakeWaitMs: 60_000,
  /** In etcd an object has at most 1.5 MiB; its managedFields come on top. */
  maxObjectBytes: 4 * MIB,
  maxListBytes: 64 * MIB,
  maxWatchLineBytes: 16 * MIB,
  /** Objects of one page of a listing. */
  pageSize: 500,
  /** Workloads of one kind in a cluster. A listing with more is refused; a watch adds no more than this. */
  maxWorkloadsPerKind: 100_000,
  /** Calls that are open at once to one cluster, and calls that wait behind them. */
  maxConcurrentCalls: 8,
  maxQueuedCalls: 64,
  /** Further attempts at a read whose connection has broken. */
  maxReadRetries: 2,
  /** Shortest delay before the retry of a call that got 429, whatever Retry-After says. */
  minRetryAfterMs: 250,
  /** After `failureThreshold` calls in a row without an answer a cluster gets no calls for a while. */
  circuitBreaker: { failureThreshold: 3, initialOpenMs: 500, maxOpenMs: 5_000 },
  /** Retries of a change that met a conflict, each with a fresh read. */
  maxConflictRetries: 5,
  /** Retries of a change without an answer: all attempts together fit into `scaleTimeoutMs`. */
  maxUnansweredRetries: 1,
  /** The highest count in a receipt to accept for a workload never seen with as many replicas. */
  trustedReplicas: 100,
  watch: {
    /** Requested duration of a watch; up to as much again is added at random. */
    timeoutS: 300,
    /** A watch without a byte for this long is dead. Bookmarks arrive about once a minute. */
    silenceTimeoutMs: 90_000,
    retry: { initialDelayMs: 800, maxDelayMs: 30_000, maxRetryAfterMs: 60_000 },
    /** Longest time from resuming a watch after an outage to a listing; at random up to nine tenths less. */
    maxRelistDelayMs: 600_000,
  },
  /** Pause between listings where watching is denied; they take at most 1 / `listingsShare` of the time. */
  poll: { intervalMs: 30_000, listingsShare: 20 },
  /** How often to check whether a cluster still accepts the account. */
  accountCheckMs: 30_000,
  /** How long before their expiry users are warned about credentials. */
  expiryWarningMs: 7 * 86_400_000,
  /**
   * A token is renewed after the share `renewAt` of its lifetime, or at the age `maxAgeMs`. After the share
   * `warnAt` users are warned that renewal fails. `lifetimeS`: what a new account requests; clusters may give
   * less, but never less than `minLifetimeS`.
   */
  tokenRenewal: {
    lifetimeS: 7 * 86_400,
    minLifetimeS: 600,
    renewAt: 1 / 3,
    maxAgeMs: 86_400_000,
    /** At least between two renewals, however short the life of the tokens. */
    minPauseMs: 60_000,
    warnAt: 2 / 3,
    checkMs: 3_600_000,
    retry: { initialDelayMs: 60_000, maxDelayMs: 3_600_000 },
  },
  /** Namespaces that are listed and watched one by one for an account without rights on all. */
  maxNamespaces: 50,
  /** Interval between reads of the token of the pod's service account. */
  podTokenTtlMs: 60_000,
  idleMinutes: { default: 30, min: 1, max: 43_200 },
  /** Sleeps of the sweeper that run at once. */
  maxConcurrentSleeps: 4,
  /** Auto-sleep skips a workload that something else woke within `withinMs`, `max` times in a row. */
  undone: { max: 2, withinMs: 900_000 },
  /** Delay of the first sweep, so that tethers have reported their traffic by then. */
  sweeperStartDelayMs: 60_000,
  /** The longest delay before an activity is stored. */
  activityFlushMs: 1_000,
  /** Rows in one message to the front, which answers requests in between. */
  rowsPerTell: 250,
  /** Rows of one commit, and the pause after one that has failed. */
  rowsPerCommit: 500,
  commitRetryMs: 10_000,
  /** The longest delay before a watch's position is stored without a change of a workload. */
  positionFlushMs: 60_000,
  /** How many clusters begin to be watched at once, and the time after which a slow one no longer counts. */
  beginning: { lanes: 20, slowMs: 1_000 },
  /** The most workloads in one bulk request. */
  maxBulk: 1_000,
  /** How many workloads per cluster all bulk requests change at once. */
  bulkLanes: 4,
  /** How many workloads per cluster one bulk request begins at once, including those that wait for others. */
  bulkPlaces: 16,
  /** The time limit of such a request. */
  bulkTimeoutMs: 1_800_000,
  /** The largest page of workloads, which is also the default. */
  maxPage: 1_000,
  /** Longer lists of workloads are composed and sent in parts. */
  maxWholeList: 10_000,
} as const;

/** Policies: docs/reference.md "Policies". */
export const POLICY = {
  maxPolicies: 200,
  maxNameLength: 63,
  /** Elements of a list in a policy: clusters, namespaces, windows, exceptions. */
  maxList: 50,
  maxTextLength: 1_000,
  /** The number of schedules whose timelines are cached. */
  maxTimelines: 10_000,
  /** The number of switches per workload in a preview. */
  previewed: 10,
  /** The longest time between two checks of the clock while there is a schedule. */
  lookMs: 30_000,
  /** How long a workload that is created within a window is left awake, so that it can come up. */
  graceMs: 900_000,
  /** Changes within this time are handled together. */
  settleMs: 100,
  /** How many switches of a cluster are made at once. */
  lanes: 4,
  /** The pause before a failed switch is tried again. */
  retry: { initialDelayMs: 15_000, maxDelayMs: 600_000 },
  /** How often to list the namespaces, whose annotations also count. */
  namespacesMs: 300_000,
} as const;

/** Wake order: docs/reference.md "Wake order". */
export const WAKE_ORDER = {
  /** The most dependencies of a workload. */
  maxNames: 20,
  /** The longest wait for a workload's dependencies; shorter for a connection, which is held meanwhile. */
  waitMs: 60_000,
  connectionWaitMs: 25_000,
  /** Extra time for the waiting side to be told that the wait is over. */
  graceMs: 1_000,
  /** The most workloads to visit in search of a cycle. */
  maxLooked: 200,
} as const;

/** Savings: docs/reference.md "Savings". */
export const SAVINGS = {
  /** A scope seen within this time counts as watched: a change happened when it was seen. */
  watchedMs: 120_000,
  /** For this long, a resumed watch reports what happened before. */
  catchUpMs: 10_000,
  /** Receipts older than this count from this time on. */
  maxPastMs: 366 * 86_400_000,
  /** The most time without Berth that is counted, because the clock may be wrong at the start. */
  maxUnseenMs: 31 * 86_400_000,
} as const;

/** The events and the audit log of the cloud part: docs/reference.md "Cloud events". */
export const CLOUD_EVENTS = {
  /** The newest events, which are in memory. */
  kept: 1_024,
  /** Events that may wait for disk space, and the pause before the next attempt. */
  maxWaiting: 1_024,
  retryMs: 10_000,
  /** The most state changes recorded at once per cluster; one more is allowed every `refillMs`. */
  changes: { burst: 10_000, refillMs: 5_000 },
  /** The history on disk. Its oldest files are deleted when it exceeds this size or they exceed this age. */
  history: { fileBytes: MIB, fileMs: 86_400_000, totalBytes: 64 * MIB, maxAgeMs: 90 * 86_400_000 },
  /** The largest page of events, and the default. */
  maxPage: 1_000,
  defaultPage: 100,
  /** How many events a replay reads from disk at once, and the unread bytes above which it pauses. */
  replayBatch: 2_000,
  maxUnreadReplayBytes: 256 * KIB,
} as const;

/** Operations of the cloud part: docs/reference.md "Operations and retries". */
export const CLOUD_OPERATIONS = {
  /** How long operations are kept, how many of the newest, and how many bytes of their answers. */
  keptMs: 86_400_000,
  maxKept: 5_000,
  maxKeptBytes: 4 * MIB,
  maxKeyLength: 255,
} as const;

/** Tethers: docs/reference.md "Tethers", "Connections of a tether". */
export const TETHER = {
  maxLabelLength: 64,
  /** The longest wait of a connection for a pod, and the bytes held for it meanwhile. */
  podWaitTimeoutMs: 60_000,
  maxPendingBytes: 64 * KIB,
  /** The most waiting connections, and the bytes held for them, over all tethers of a daemon. */
  held: { maxConnections: 4_096, maxBytes: 64 * MIB },
  /** Open connections per tether. */
  maxConnections: 2_048,
  /** From the dial to the upgraded connection, and from the request for a stream to the node's answer. */
  dialTimeoutMs: 10_000,
  streamOpenTimeoutMs: 2_000,
  /** The most concurrent dials to one cluster per tether. */
  maxConcurrentDials: 16,
  /** How long to retry a connection whose pod could not be reached; `retry` has the pauses. */
  retryWindowMs: 5_000,
  /** The same for a pod in which nothing accepts the connection. */
  refusedRetryWindowMs: 1_000,
  retry: { initialDelayMs: 20, maxDelayMs: 500 },
  /**
   * A pod that became Ready less than this long ago may not listen yet, so a refused connection is retried.
   */
  freshPodMs: 20_000,
  /** How long a pod that could not be reached is avoided, if there is another. */
  podAvoidMs: 1_000,
  /** The same for a pod that did not answer at all, whose node may be dead. */
  unreachableAvoidMs: 30_000,
  /** How long a cluster may take to begin to end the pods of a workload that was put to sleep. */
  condemnedMs: 5_000,
  /** Shortest interval between the starts of two listings of pods; a pod that is gone asks for a new one. */
  minRelistIntervalMs: 1_000,
  /** Interval between checks of waiting connections. */
  wakeCheckIntervalMs: 2_000,
  /**
   * The wait before the cluster's events are checked for why no pod appears, and the interval between checks.
   */
  eventsIntervalMs: 10_000,
  /** A client that closes within this time, such as a port scan, wakes nothing. */
  probeDelayMs: 10,
  /** Longest wait, after the data stream has closed, for the error stream, which explains a failure. */
  errorStreamTimeoutMs: 1_000,
  /**
   * Time for a node to prove a connection with an abandoned stream clear; after it the connection is never
   * reused.
   */
  drainCheckTimeoutMs: 5_000,
  /**
   * How long a node may take to close a stream whose client has disconnected; it may still send
   * `maxDiscardedBytes`.
   */
  streamCloseTimeoutMs: 30_000,
  /** How long unsent data for a pod is kept without progress, and the most such connections per pod. */
  stuckTimeoutMs: 300_000,
  maxStuckConnections: 16,
  maxDiscardedBytes: 256 * KIB,
  /** A node keeps a record of every stream of a connection until the connection closes. */
  maxStreamsPerConnection: 2_000,
  /** How long a connection may be silent before it is pinged, and before it counts as dead. */
  pingIntervalMs: 5_000,
  deadPeerMs: 15_000,
  /** The same while bytes to the node have not left this machine: its uplink may be slow. */
  unsentDeadPeerMs: 30_000,
  /** The slowest path that counts as alive: so much more time has an answer that follows data. */
  slowUplinkBytesPerMs: 20,
  /** A connection that has received something within this time counts as alive. */
  assumedAliveMs: 1_000,
  /** Age at which unused connections are closed; the last one to a pod has `lastConnectionIdleMs`. */
  connectionIdleMs: 60_000,
  lastConnectionIdleMs: 600_000,
  /** Unsent bytes in one direction above which its source is paused. */
  maxBufferedBytes: 256 * KIB,
  /** Time for a client to close after its pod has closed and everything has been sent to it. */
  closeLingerMs: 5_000,
  /** Time after which a transport that a cluster does not offer is tried again. */
  transportRetryMs: 300_000,
  /** How long a pod may be silent once its client has half-closed; the default of a field. */
  halfClosedTimeoutMs: 60_000,
  maxHalfClosedTimeoutMs: 86_400_000,
  /** How long a connection to a deleted pod may be silent, and how many such pods are remembered. */
  goneSilenceMs: 10_000,
  maxGonePods: 1_000,
  /** How long an unread client may be silent before the kernel is asked whether it has disconnected. */
  unreadClientMs: 60_000,
  /** Without a pod, data of a client that has disconnected is dropped after this time. */
  clientGoneGraceMs: 1_000,
  /** Delay before a tether whose actor has ended is opened again. */
  reopenDelayMs: 1_000,
  /** Interval between reports of changed numbers, and between checks of half-closed and waiting clients. */
  tickIntervalMs: 1_000,
  trafficReportIntervalMs: 15_000,
} as const;

/** Requests forwarded to the Berth that holds the clusters: docs/reference.md "Shared database". */
export const FORWARDING = {
  /** Connections to it, and those of them that are kept without a request, and for how long. */
  maxConnections: 4_096,
  maxIdle: 64,
  idleMs: 5_000,
  /** For a connection to it. */
  connectTimeoutMs: 2_000,
  /** For its verdict on a token. */
  verdictTimeoutMs: 5_000,
} as const;

/** The relay, which carries connections to workloads for other machines: docs/reference.md "Relay". */
export const RELAY = {
  /** Streams of one connection. */
  maxStreams: 512,
  /**
   * How much a stream may send without acknowledgement, and how far that window may grow when it is the
   * bottleneck. All windows of a connection together are at most 64 MiB: `maxStreams` windows, and their
   * growth.
   */
  windowBytes: 64 * KIB,
  maxWindowBytes: 8 * MIB,
  maxGrownBytes: 32 * MIB,
  /** The most data in one frame; then another stream gets its turn. */
  maxDataBytes: 32 * KIB,
  maxRequestBytes: 4 * KIB,
  /** With more unsent bytes on the connection than this, data waits. */
  maxUnsentBytes: 256 * KIB,
  /** With more waiting bytes than this, a stream's source is paused; below TETHER.maxBufferedBytes. */
  maxUnsentOfStream: 128 * KIB,
  /** With more unread answers than this, a peer may request nothing. */
  maxUnreadAnswers: 4 * MIB,
  /** The most connections to a relay, including those without a ticket yet. */
  maxConnections: 1_024,
  /** Interval of pings, and the silence after which a connection is dead. */
  pingIntervalMs: 25_000,
  deadPeerMs: 60_000,
  /** The silence after which a connection is dead on which a stream was just opened. */
  probeMs: 10_000,
  /** Time for the head of a request, and for a client to connect. */
  headTimeoutMs: 10_000,
  dialTimeoutMs: 10_000,
  /** The time limit for answers of another Berth that do not wait for anything. */
  answerTimeoutMs: 10_000,
  /** How long a peer may take to receive what was sent before the connection is closed. */
  closeTimeoutMs: 1_000,
  /** Validity of a ticket. */
  ticketMs: 60_000,
  /** The most workload ports in use: each costs memory, a timer and two events in the audit log. */
  maxPorts: 1_024,
  /** The most connections of one user or token, and the most ports: no one can lock others out. */
  maxOfOne: 256,
  /** A workload port without connections is dropped after this time. */
  idlePortMs: 60_000,
  /** The pause before a taken port is tried again. */
  listenRetryMs: 10_000,
  /** The most connections of a thread to other Berths' relays. */
  maxDialled: 16,
  /** How often connections are reviewed that are unused, or whose user may have logged out. */
  reviewIntervalMs: 1_000,
  /** Pauses between attempts to reach a relay. */
  retry: { initialDelayMs: 100, maxDelayMs: 1_000 },
} as const;

/** The lease of a shared database: docs/reference.md "Shared database". */
export const LEASE = {
  /** By the database's clock. */
  ttlMs: 5_000,
  /** A holder stops this long before its lease can expire. */
  marginMs: 1_000,
  beatMs: 500,
  /** For a holder whose session has ended. */
  graceMs: 1_500,
  /** A change of a cluster requires a renewal that is younger than the grace by this margin. */
  changeMarginMs: 250,
  /** The time limit for the answer to a beat, after which its connection is abandoned. */
  beatTimeoutMs: 2_000,
} as const;

/** Connections to a shared database. */
export const DATABASE = {
  connectTimeoutMs: 5_000,
  /** The time limit for one statement, after which the connection is abandoned. */
  statementTimeoutMs: 30_000,
  migrationTimeoutMs: 600_000,
  /** The time limit for a connection's notification to itself. */
  notifyTimeoutMs: 2_000,
  /** The pause between two attempts, plus as much again at random. */
  retryMs: 50,
  maxRetryMs: 2_000,
  rowsPerPart: 1_000,
  /** Interval between removals of old events. */
  pruneMs: 3_600_000,
  minVersion: 13,
} as const;

/** API tokens and grants: docs/reference.md "API tokens". */
export const PRINCIPALS = {
  maxTokens: 1_000,
  maxGrants: 5_000,
  /** The shortest interval between two records of a token's use. */
  usedMs: 60_000,
  /** The longest time between two checks of the clock while a token is awaited to expire. */
  lookMs: 30_000,
} as const;
