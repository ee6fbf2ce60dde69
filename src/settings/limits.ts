// The numbers that users or several files depend on and, at the end, the relations between them that the code
// relies on. A number used by a single file is in that file.

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** HTTP: docs/reference.md "Bodies", "Query values". */
export const HTTP = {
  maxBodyBytes: MIB,
  maxKubeconfigBytes: 256 * KIB,
  /** A body that is not complete this long after its head gets 408. */
  bodyTimeoutMs: 8_000,
  headTimeoutMs: 10_000,
  /** Memory of all bodies that are being received. */
  maxBodyBytesInFlight: 64 * MIB,
  /**
   * Shares of the descriptors that the process may have open: for connections to the daemon's own address,
   * and to the cloud's. The rest is for logs, the host, agents and tethers.
   */
  connectionShare: { daemon: 0.5, cloud: 0.25 },
  /** Connections to the cloud's own address that have not shown its token yet. */
  maxStrangers: 128,
  /** Bytes of an oversized body that are read and dropped, so that the client can read its 413. */
  maxDrainBytes: 8 * MIB,
  /** Mean number of response bytes between two checks that the client is reading. */
  readCheckBytes: 256 * KIB,
  /** Nesting depth of arrays and objects. */
  maxJsonDepth: 32,
  /** Faults listed in one error: more than the number of fields in a valid body. */
  maxErrorDetails: 1_000,
  /** Events in an answer of the history without `limit`. */
  defaultHistoryEvents: 100,
  /** The largest duration in a query. */
  maxQueryDurationMs: 3_600_000,
} as const;

/** Files of the user that are read as a whole: the configuration, and project files of any tool. */
export const TEXT_FILE = {
  maxBytes: MIB,
  /** Nesting of tables and arrays in the configuration. */
  maxTomlDepth: 16,
} as const;

/** Services: docs/reference.md "Fields of a service", "Numbers". */
export const SERVICE = {
  defaultStartTimeoutMs: 30_000,
  defaultStopGraceMs: 5_000,
  maxCmdBytes: 64 * KIB,
  maxCwdBytes: 4 * KIB,
  maxReadyUrlBytes: 4 * KIB,
  maxEnvEntries: 256,
  maxEnvBytes: 64 * KIB,
  maxDependsOn: 64,
  maxLabels: 16,
  maxLabelLength: 256,
  /** A service without a ready URL is ready once its process has been up this long. */
  minUptimeMs: 50,
  restart: { initialDelayMs: 100, maxDelayMs: 30_000, resetAfterMs: 10_000 },
  /** Longest wait of a stop after SIGKILL. */
  killTimeoutMs: 2_000,
  /** Last lines of the log in a hint or an explanation. */
  hintLines: 20,
  /** Interval between asks of a process host that does not answer, and the deadline of each. */
  hostRetryMs: 500,
  hostAskTimeoutMs: 5_000,
  /** Shortest time for the host to make a process; a start whose ready-check has more allows more. */
  minSpawnMs: 1_000,
  /** Interval between attempts to record an end that could not be written. */
  endRecordRetryMs: 1_000,
  /** Time beyond grace period and kill after which a host that does not answer a stop counts as gone. */
  hostStopMarginMs: 10_000,
  /** Time for which the actor of a removed service stays to answer unknown_service. */
  removedLingerMs: 1_000,
  /** Deadline of an ask that waits for a start or a stop: longer than any of them. */
  askDeadlineMs: 3 * 3_600_000,
  /** On shutdown: time for the ordered stop, then for everything that is left. */
  shutdown: { orderedStopMs: 20_000, remainingStopMs: 3_000 },
  /** Time after the signal at which a daemon that is still there ends by that signal. */
  endMs: 60_000,
} as const;

/** docs/reference.md "Ready-check". */
export const READY_CHECK = {
  fastIntervalMs: 20,
  fastPhaseMs: 2_000,
  /**
   * After the fast phase: the next interval as a fraction of the time waited so far, up to `maxIntervalMs`.
   */
  elapsedFraction: 0.05,
  maxIntervalMs: 500,
  agentMaxIntervalMs: 1_000,
  probeTimeoutMs: 2_000,
  maxConcurrent: 64,
} as const;

/** Events: docs/reference.md "Event stream", "Replay and retention". */
export const EVENTS = {
  retained: 1_024,
  statsIntervalMs: 2_000,
  reconnectDelayMs: 1_000,
  /**
   * Well under the 10 s after which uWebSockets.js drops a blocked connection, and the 15 s of the reference.
   */
  heartbeatMs: 5_000,
  /** A subscriber with more unsent bytes than this is disconnected. */
  maxUnsentBytes: MIB,
  /**
   * Upper limit of the pause after a write to many subscribers, which otherwise lasts as long as the write
   * took.
   */
  maxWritePauseMs: 50,
  /** Ids that are reserved on disk ahead of use, so that ids still grow after a crash of the machine. */
  reservedIds: 10_000,
} as const;

/** All event and log streams together: docs/reference.md "Streams". */
export const STREAMS = {
  maxOpen: 8_192,
  /** What their clients have not read; those with most of it are cut off. */
  maxUnreadBytes: 128 * MIB,
  checkIntervalMs: 500,
} as const;

/** The store: docs/reference.md "State directory", "A full disk". */
export const STORE = {
  /** Blocks of the file that only ends, marks and removals may use once the disk is full. */
  reserveBytes: 256 * KIB,
  /** Blocks that are allocated at once, ahead of use. */
  growthBytes: 512 * KIB,
  /** Interval between attempts to allocate the reserve anew. */
  renewalMs: 1_000,
  /** The first copy of the store is made this long after a start, the next ones at this interval. */
  firstCopyMs: 10_000,
  copyIntervalMs: 300_000,
  /** The interval for a store whose last copy was larger than `largeCopyBytes`. */
  largeCopyIntervalMs: 3_600_000,
  largeCopyBytes: 8 * MIB,
} as const;

/** Logs: docs/reference.md "Logs of a service", "Log files". */
export const LOGS = {
  defaultLines: 50,
  maxLines: 1_000,
  maxLineBytes: 64 * KIB,
  /** Tails longer than this are shown one at a time. */
  longTailBytes: 4 * MIB,
  /** Reads of logs for followers that are under way at once. */
  maxConcurrentReads: 4,
  /** Text of logs that is kept for followers that come to the same place a little later. */
  maxSharedBytes: 8 * MIB,
} as const;

/** Agents: docs/reference.md "Terminals", "Attach". */
export const AGENT = {
  defaultCols: 120,
  defaultRows: 32,
  /** Most columns, and most rows, of a terminal. */
  maxColsOrRows: 1_000,
  /** Shortest interval between two changes of a terminal's size. */
  resizeIntervalMs: 20,
  /** Output that a viewer may leave unacknowledged, and input that its program may leave unread. */
  maxUnacknowledgedBytes: MIB,
  /** The same for all viewers together: with more than 64, each has its share. */
  maxViewerBytes: 64 * MIB,
  /** The end of the output, from which a screen is drawn. A viewer that is further behind gets a screen. */
  replayBytes: MIB,
  /** Time for drawing; the rest of the output is sent as it is. */
  drawBudgetMs: 500,
  /** Time after which the thread of a drawing is ended, and the pause of that terminal after it. */
  drawTimeoutMs: 10_000,
  overrunPauseMs: 10_000,
} as const;

/** The page at `/`: docs/reference.md "Sessions of the page". */
export const PAGE = {
  /** Life of a code that takes a browser to the page. */
  codeMs: 300_000,
  /** Codes that are open at once; one more ends the oldest. */
  maxCodes: 64,
  /** Life of a page's key; a reload of the page begins it anew. */
  sessionMs: 7 * 24 * 3_600_000,
} as const;

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
} as const;

/** Tethers: docs/reference.md "Tethers", "Connections of a tether". */
export const TETHER = {
  maxLabelLength: 64,
  /** Longest wait of a connection for a pod, and the bytes that are kept for it meanwhile. */
  podWaitTimeoutMs: 60_000,
  maxPendingBytes: 64 * KIB,
  /** Connections that wait for a pod: per tether, and per thread. */
  maxPending: 256,
  maxPendingPerThread: 1_000,
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
  /** Time for which a pod that could not be reached gets no connection, if there is another. */
  podAvoidMs: 1_000,
  /** Shortest interval between the starts of two listings of pods; a pod that is gone asks for a new one. */
  minRelistIntervalMs: 1_000,
  /** Interval between checks of waiting connections. */
  wakeCheckIntervalMs: 2_000,
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
  pingIntervalMs: 25_000,
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
  /** Silence of the pod that ends a connection whose client has half-closed. */
  halfClosedIdleMs: 60_000,
  /** Time for delivering what a client sent before it went away. */
  clientGoneGraceMs: 1_000,
  /** Delay before a tether whose actor has ended is opened again. */
  reopenDelayMs: 1_000,
  /** Interval between reports of changed numbers, and between checks of half-closed and waiting clients. */
  tickIntervalMs: 1_000,
  trafficReportIntervalMs: 15_000,
} as const;

/** The log of a daemon in the background: docs/reference.md "State directory". */
export const DAEMON_LOG = {
  /** A longer one is moved to `daemon.log.1`. */
  maxBytes: MIB,
  checkIntervalMs: 1_000,
} as const;

/** Threads and actors. */
export const THREADS = {
  /** Threads that tethers are spread over. */
  tethers: 2,
  restarts: { max: 5, withinMs: 60_000 },
  /**
   * A thread hangs when it has missed `missedBeats` beats in a row, `beatMs` apart, and has used
   * `maxStepCpuMs` of processor time meanwhile or has waited in the system all the time. No step of Berth
   * takes a tenth of that. If it has not ended `endMs` later, the process ends.
   */
  hang: { beatMs: 1_000, missedBeats: 5, maxStepCpuMs: 2_500, endMs: 5_000 },
  askDeadlineMs: 30_000,
  /** A thread that has not stopped its actors by then is terminated. */
  stopTimeoutMs: 20_000,
  /** Messages that may wait at an actor that clients write to; one more gets `daemon_busy`. */
  mailboxCapacity: 4_096,
  /** Time for a process host to answer after its start; without an answer the daemon does not start. */
  hostStartTimeoutMs: 10_000,
} as const;

/** The pool of job threads: pure functions on heavy or untrusted input. */
export const JOBS = {
  maxThreads: 2,
  /** Jobs that wait; one more is refused. */
  maxQueued: 64,
  deadlineMs: 5_000,
  /** A thread without work ends after this time. */
  idleTimeoutMs: 10_000,
  maxHeapMB: 256,
} as const;

/** Relations that must hold; `test/readme.test.ts` checks each. */
export const INVARIANTS: readonly [why: string, holds: boolean][] = [
  [
    'the largest query may ask for the default wait',
    HTTP.maxQueryDurationMs >= SERVICE.defaultStartTimeoutMs,
  ],
  ['one line must fit in what a follower may buffer', LOGS.maxLineBytes * 4 <= EVENTS.maxUnsentBytes],
  ['a drawing stops before its thread is ended', AGENT.drawBudgetMs * 10 <= AGENT.drawTimeoutMs],
  ['a kubeconfig is smaller than any body', HTTP.maxKubeconfigBytes <= HTTP.maxBodyBytes],
  [
    'an ask outlives the longest start and the stop after it',
    SERVICE.askDeadlineMs > 2 * HTTP.maxQueryDurationMs,
  ],
  ['a shutdown waits for what is killed', SERVICE.shutdown.remainingStopMs > SERVICE.killTimeoutMs],
  [
    'a dead watch is found before a good one ends',
    CLOUD.watch.silenceTimeoutMs < CLOUD.watch.timeoutS * 1_000,
  ],
  ['an API server may answer for as long as it is dialled', CLOUD.callTimeoutMs >= CLOUD.dialTimeoutMs],
  [
    'a waiting client is not given up before a pod is dialled',
    TETHER.podWaitTimeoutMs > TETHER.dialTimeoutMs,
  ],
  [
    'a stale list of pods is renewed before a client is given up',
    TETHER.retryWindowMs >= 2 * TETHER.minRelistIntervalMs,
  ],
  [
    'traffic is reported before any workload is put to sleep after a restart',
    TETHER.trafficReportIntervalMs < CLOUD.sweeperStartDelayMs,
  ],
  [
    'the ready-check slows down only after its fast phase',
    READY_CHECK.fastPhaseMs * READY_CHECK.elapsedFraction >= READY_CHECK.fastIntervalMs,
  ],
];
