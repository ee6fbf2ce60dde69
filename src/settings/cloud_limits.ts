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
  /** Longest wait of a client for a sync; the sync itself goes on. */
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
  /** The largest count in a receipt that is obeyed although the workload was never seen with as many. */
  trustedReplicas: 100,
  watch: {
    /** Requested duration of a watch; up to as much again is added at random. */
    timeoutS: 300,
    /** A watch without a byte for so long is dead. Bookmarks come about once a minute. */
    silenceTimeoutMs: 90_000,
    retry: { initialDelayMs: 800, maxDelayMs: 30_000 },
  },
  /** Pause between listings where watching is denied; they take at most 1 / `listingsShare` of the time. */
  poll: { intervalMs: 30_000, listingsShare: 20 },
  /** Interval of the check whether a cluster still accepts the account. */
  accountCheckMs: 30_000,
  /** Credentials that end within this time are warned of. */
  expiryWarningMs: 7 * 86_400_000,
  /**
   * A token is renewed after `renewAt` of its life, at the latest `maxAgeMs` old. From `warnAt` of its life
   * on users are told that this fails. `lifetimeS`: what a new account asks for. Clusters may give less, but
   * never less than `minLifetimeS`.
   */
  tokenRenewal: {
    lifetimeS: 7 * 86_400,
    minLifetimeS: 600,
    renewAt: 1 / 3,
    maxAgeMs: 86_400_000,
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
  /** Auto-sleep leaves alone what `max` times in a row was woken within `withinMs` by something else. */
  undone: { max: 2, withinMs: 900_000 },
  /** Delay of the first sweep: by then tethers have reported their traffic. */
  sweeperStartDelayMs: 60_000,
  /** Latest write of an activity to the store. */
  activityFlushMs: 1_000,
  /** Rows in one message to the front, which answers requests in between. */
  rowsPerTell: 250,
  /** Rows of one commit, and the pause after one that has failed. */
  rowsPerCommit: 500,
  commitRetryMs: 10_000,
  /** Latest write of a watch's position that no change of a workload comes with. */
  positionFlushMs: 60_000,
  /** Clusters that begin to be watched at once, and the time after which one that is slow counts no more. */
  beginning: { lanes: 20, slowMs: 1_000 },
  /** Workloads that one request puts to sleep or wakes, and those of a cluster that are changed at once. */
  maxBulk: 1_000,
  bulkLanes: 4,
  /** Latest end of such a request. */
  bulkTimeoutMs: 1_800_000,
  /** Workloads of a page at most, and by default. */
  maxPage: 1_000,
  /** A list of more workloads than this is composed and sent in parts. */
  maxWholeList: 10_000,
} as const;

/** Policies: docs/reference.md "Policies". */
export const POLICY = {
  maxPolicies: 200,
  maxNameLength: 63,
  /** Elements of a list in a policy: clusters, namespaces, windows, exceptions. */
  maxList: 50,
  maxTextLength: 1_000,
  /** Schedules whose times are kept ready. */
  maxTimelines: 10_000,
  /** Switches that a preview shows of each workload. */
  previewed: 10,
  /** Longest time between two looks at the clock, while there is a schedule. */
  lookMs: 30_000,
  /** Changes that come together are looked at once. */
  settleMs: 100,
  /** Switches of a cluster that are made at once. */
  lanes: 4,
  /** Pause before what has failed is tried again. */
  retry: { initialDelayMs: 15_000, maxDelayMs: 600_000 },
  /** Interval between listings of the namespaces, whose annotations count too. */
  namespacesMs: 300_000,
} as const;

/** Order of wakes: docs/reference.md "Order of wakes". */
export const WAKE_ORDER = {
  /** Workloads that one comes after, at most. */
  maxNames: 20,
  /** Longest wait for all that a workload comes after; the shorter one for a connection, which is held. */
  waitMs: 60_000,
  connectionWaitMs: 25_000,
  /** Time for the end of a wait to be told by who waits. */
  graceMs: 1_000,
  /** Workloads that are looked at for a circle of names. */
  maxLooked: 200,
} as const;

/** Savings: docs/reference.md "Savings". */
export const SAVINGS = {
  /** What was seen within this time was watched: a change happened when it was seen. */
  watchedMs: 120_000,
  /** A watch that goes on tells for so long of what has happened before. */
  catchUpMs: 10_000,
  /** A receipt of longer ago counts from then on. */
  maxPastMs: 366 * 86_400_000,
  /** Of a time without Berth so much counts: the clock may be wrong at the start. */
  maxUnseenMs: 31 * 86_400_000,
} as const;

/** The events and the audit log of the cloud part: docs/reference.md "Cloud events". */
export const CLOUD_EVENTS = {
  /** The newest events, which are in memory. */
  kept: 1_024,
  /** Events that wait for room on a full disk, and the pause before the next attempt. */
  maxWaiting: 1_024,
  retryMs: 10_000,
  /** Changes of state that are recorded of one cluster at once, and one more per `refillMs`. */
  changes: { burst: 10_000, refillMs: 5_000 },
  /** The history on disk: its oldest files go when it is larger, or they older, than this. */
  history: { fileBytes: MIB, fileMs: 86_400_000, totalBytes: 64 * MIB, maxAgeMs: 90 * 86_400_000 },
  /** Events of a page at most, and by default. */
  maxPage: 1_000,
  defaultPage: 100,
  /** Events that a replay from disk reads at once, and the unread bytes above which it waits. */
  replayBatch: 2_000,
  maxUnreadReplayBytes: 256 * KIB,
} as const;

/** Operations of the cloud part: docs/reference.md "Operations and retries". */
export const CLOUD_OPERATIONS = {
  /** The newest are kept for so long, so many of them, and so many bytes of their answers. */
  keptMs: 86_400_000,
  maxKept: 5_000,
  maxKeptBytes: 4 * MIB,
  maxKeyLength: 255,
} as const;

/** Tethers: docs/reference.md "Tethers", "Connections of a tether". */
export const TETHER = {
  maxLabelLength: 64,
  /** Longest wait of a connection for a pod, and the bytes that are kept for it meanwhile. */
  podWaitTimeoutMs: 60_000,
  maxPendingBytes: 64 * KIB,
  /** Connections that wait, and the bytes that are kept of them: of all tethers of a daemon. */
  held: { maxConnections: 4_096, maxBytes: 64 * MIB },
  /** Open connections per tether. */
  maxConnections: 2_048,
  /** From the dial to the upgraded connection, and from the request for a stream to the node's answer. */
  dialTimeoutMs: 10_000,
  streamOpenTimeoutMs: 2_000,
  /** Dials that run at once to one cluster, per tether. */
  maxConcurrentDials: 16,
  /** Time for retries of a connection whose pod could not be reached; `retry` gives the pauses. */
  retryWindowMs: 5_000,
  /** The same for a pod in which nothing accepts the connection. */
  refusedRetryWindowMs: 1_000,
  retry: { initialDelayMs: 20, maxDelayMs: 500 },
  /** Age of a pod's readiness up to which its program may not listen yet: a refusal is then tried again. */
  freshPodMs: 20_000,
  /** Time for which a pod that could not be reached gets no connection, if there is another. */
  podAvoidMs: 1_000,
  /** The same for a pod that has not answered at all: its node may be dead. */
  unreachableAvoidMs: 30_000,
  /** Time for a cluster to begin to end the pods of a workload that is put to sleep. */
  condemnedMs: 5_000,
  /** Shortest interval between the starts of two listings of pods; a pod that is gone asks for a new one. */
  minRelistIntervalMs: 1_000,
  /** Interval between checks of waiting connections. */
  wakeCheckIntervalMs: 2_000,
  /** Wait before the events of the cluster are asked why no pod comes, and interval between such looks. */
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
  /** Time for a node to close a stream whose client has gone; it may still send `maxDiscardedBytes`. */
  streamCloseTimeoutMs: 30_000,
  /**
   * Time since the last progress after which unsent data to a pod is given up, and the limit of such
   * connections per pod.
   */
  stuckTimeoutMs: 300_000,
  maxStuckConnections: 16,
  maxDiscardedBytes: 256 * KIB,
  /** A node keeps a record of every stream of a connection until the connection closes. */
  maxStreamsPerConnection: 2_000,
  /** Silence after which a connection is asked for a sign of life, and that of one that is dead. */
  pingIntervalMs: 5_000,
  deadPeerMs: 15_000,
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
  /** Silence of the pod that ends a connection whose client has half-closed; the default of a field. */
  halfClosedTimeoutMs: 60_000,
  maxHalfClosedTimeoutMs: 86_400_000,
  /** Silence of a client that is not read from after which the kernel is asked whether it has gone. */
  unreadClientMs: 60_000,
  /** Time without a pod after which what a client sent before it went away is dropped. */
  clientGoneGraceMs: 1_000,
  /** Delay before a tether whose actor has ended is opened again. */
  reopenDelayMs: 1_000,
  /** Interval between reports of changed numbers, and between checks of half-closed and waiting clients. */
  tickIntervalMs: 1_000,
  trafficReportIntervalMs: 15_000,
} as const;

/** Requests that are passed on to the Berth that has the clusters: docs/reference.md "Shared database". */
export const FORWARDING = {
  /** Connections to it, and those of them that are kept without a request, and for how long. */
  maxConnections: 4_096,
  maxIdle: 64,
  idleMs: 5_000,
  /** For a connection to it. */
  connectTimeoutMs: 2_000,
} as const;

/** The relay, which carries connections to workloads for other machines: docs/reference.md "Relay". */
export const RELAY = {
  /** Streams of one connection. */
  maxStreams: 512,
  /**
   * What a stream may send unasked, and how far that grows while it is the limit. Together the windows of a
   * connection are 64 MiB at most: `maxStreams` windows, and what they have grown by.
   */
  windowBytes: 64 * KIB,
  maxWindowBytes: 8 * MIB,
  maxGrownBytes: 32 * MIB,
  /** Bytes of one frame's data: then it is the next stream's turn. */
  maxDataBytes: 32 * KIB,
  maxRequestBytes: 4 * KIB,
  /** Bytes that the connection has not taken, above which data waits for its turn. */
  maxUnsentBytes: 256 * KIB,
  /** Bytes of one stream that wait, above which its source is paused: under TETHER.maxBufferedBytes. */
  maxUnsentOfStream: 128 * KIB,
  /** Bytes that a peer has not read, above which it may ask nothing more. */
  maxUnreadAnswers: 4 * MIB,
  /** Connections to a relay, with those that have not shown their ticket yet. */
  maxConnections: 1_024,
  /** Interval of pings, and the silence after which a connection is dead. */
  pingIntervalMs: 25_000,
  deadPeerMs: 60_000,
  /** Time for the head of a request, and for a client to connect. */
  headTimeoutMs: 10_000,
  dialTimeoutMs: 10_000,
  /** Time for another Berth to answer what waits for nothing. */
  answerTimeoutMs: 10_000,
  /** Time for a peer to take what is sent before the connection is closed. */
  closeTimeoutMs: 1_000,
  /** Validity of a ticket. */
  ticketMs: 60_000,
  /** Ports of workloads that are carried to: each costs memory, a timer and two events of the audit log. */
  maxPorts: 1_024,
  /** A port of a workload without connections is forgotten after it. */
  idlePortMs: 60_000,
  /** Pause before a port that is taken is tried again. */
  listenRetryMs: 10_000,
  /** Connections to the relay of another Berth, of a thread, and the interval of the look for unused ones. */
  maxDialled: 16,
  reviewIntervalMs: 15_000,
  /** Pauses between attempts to reach a relay. */
  retry: { initialDelayMs: 100, maxDelayMs: 1_000 },
} as const;

/** The lease of a shared database: docs/reference.md "Shared database". */
export const LEASE = {
  /** By the clock of the database. */
  ttlMs: 5_000,
  /** A holder stops itself so long before its lease can end. */
  marginMs: 1_000,
  beatMs: 500,
  /** Of a holder whose session has ended. */
  graceMs: 1_500,
  /** Clusters are changed only with a renewal that is younger than the grace, by so much. */
  changeMarginMs: 250,
  /** For the answer to a beat; then its connection is given up. */
  beatTimeoutMs: 2_000,
} as const;

/** Connections to a shared database. */
export const DATABASE = {
  connectTimeoutMs: 5_000,
  /** For one statement; then the connection is given up. */
  statementTimeoutMs: 30_000,
  migrationTimeoutMs: 600_000,
  /** For the notification of a connection to itself. */
  notifyTimeoutMs: 2_000,
  /** Between two attempts, with as much again at random. */
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
  /** Interval between two records of the use of a token. */
  usedMs: 60_000,
} as const;
