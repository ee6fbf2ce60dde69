// The numbers that users or several files depend on, and at the end the relations between them that the code relies on.
// What is of one file alone, such as a pause between two looks, stands there.

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** HTTP: docs/reference.md "Bodies", "Query values". */
export const HTTP = {
  maxBodyBytes: MIB,
  maxKubeconfigBytes: 256 * KIB,
  /** A body not complete this long after its head: 408. */
  bodyTimeoutMs: 8_000,
  headTimeoutMs: 10_000,
  /** Of a body that is too large this much more is read and dropped, so that its sender can read the 413. */
  maxDrainBytes: 8 * MIB,
  /** On average once in so many bytes of answers it is made sure that the client of one takes what it asks for. */
  readCheckBytes: 256 * KIB,
  /** How deep arrays and objects may lie in each other. */
  maxJsonDepth: 32,
  /** A wrong body is told at most so many of its faults one by one: more than all the fields that a right one can have. */
  maxErrorDetails: 1_000,
  /** How many events the history gives when it is not said. */
  defaultHistoryEvents: 100,
  /** The largest value of a duration in a query. */
  maxQueryDurationMs: 3_600_000,
} as const;

/** Services: docs/reference.md "Fields of a service", "Numbers". */
export const SERVICE = {
  defaultStartTimeoutMs: 30_000,
  defaultStopGraceMs: 5_000,
  maxCmdBytes: 64 * KIB,
  /** Of the working directory, and of the ready URL. */
  maxCwdBytes: 4 * KIB,
  maxReadyUrlBytes: 4 * KIB,
  maxEnvEntries: 256,
  maxEnvBytes: 64 * KIB,
  maxDependsOn: 64,
  maxLabels: 16,
  maxLabelLength: 256,
  /** Without a ready URL a service is ready when its process has been up this long. */
  minUptimeMs: 50,
  restart: { initialDelayMs: 100, maxDelayMs: 30_000, resetAfterMs: 10_000 },
  /** After SIGKILL the answer of a stop waits at most this long. */
  killTimeoutMs: 2_000,
  /** How many last lines a hint or an explanation carries. */
  hintLines: 20,
  /** How often a process host that does not answer is asked again, and how long one question may take. */
  hostRetryMs: 500,
  hostAskTimeoutMs: 5_000,
  /** How often an end that could not be written down is tried again. */
  endRecordRetryMs: 1_000,
  /** What a stop may take beyond its grace period and the kill before the host counts as gone. */
  hostStopMarginMs: 10_000,
  /** The actor of a service that was removed answers so long that there is none. */
  removedLingerMs: 1_000,
  /** The deadline of an ask that waits for a start or a stop: longer than any of them. */
  askDeadlineMs: 3 * 3_600_000,
  /** At the daemon's own end services are stopped in order for so long, then all the others, and so long is waited for them. */
  shutdown: { orderedStopMs: 20_000, remainingStopMs: 3_000 },
} as const;

/** docs/reference.md "Ready-check". */
export const READY_CHECK = {
  fastIntervalMs: 20,
  fastPhaseMs: 2_000,
  /** Afterwards the pause is this part of the time waited, at most `slowestMs`. */
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
   * Well under the 10 s after which uWebSockets.js gives up on a blocked connection, and the 15 s promised.
   */
  heartbeatMs: 5_000,
  /** A subscriber with more than this unsent is disconnected. */
  maxUnsentBytes: MIB,
  /** After events have been written to many subscribers the next ones wait as long as that has taken, at most so long. */
  maxWritePauseMs: 50,
  /** Ids are reserved on disk this far ahead, so that they still grow after a crash of the machine. */
  reservedIds: 10_000,
} as const;

/** Logs: docs/reference.md "Logs of a service", "Log files". */
export const LOGS = {
  defaultLines: 50,
  maxLines: 1_000,
  maxLineBytes: 64 * KIB,
  /** Tails longer than this are shown one at a time. */
  longTailBytes: 4 * MIB,
} as const;

/** Agents: docs/reference.md "Terminals", "Attach". */
export const AGENT = {
  defaultCols: 120,
  defaultRows: 32,
  /** The most columns, and the most rows, a terminal may have. */
  maxColsOrRows: 1_000,
  /** A terminal is told a new size at most this often. */
  resizeIntervalMs: 20,
  maxUnacknowledgedBytes: MIB,
  replayBytes: MIB,
  /** A viewer with more than this unsent is disconnected: a screen, what it may owe, and as much again. */
  maxUnsentBytes: 4 * MIB,
} as const;

/** Clusters and workloads: docs/reference.md "Cloud". */
export const CLOUD = {
  maxNameLength: 128,
  maxProviderLength: 64,
  maxYamlDepth: 20,
  maxTokenBytes: 16 * KIB,
  maxCaCertificates: 20,
  minRsaBits: 2_048,
  /** An address must answer a connect and its TLS handshake in this time. */
  dialTimeoutMs: 10_000,
  headersTimeoutMs: 10_000,
  /** A whole call with its body; listings have more. */
  callTimeoutMs: 20_000,
  listTimeoutMs: 60_000,
  /** A client's wait for a sync; the sync itself goes on. */
  syncTimeoutMs: 120_000,
  /** A sleep or wake with everything that may have to be done again. */
  scaleTimeoutMs: 120_000,
  /** `?wait=true` waits this long for a Ready pod unless `timeout` says otherwise. */
  defaultWakeWaitMs: 60_000,
  /** An object has at most 1.5 MiB in etcd, and the notes of who manages its fields besides. */
  maxObjectBytes: 4 * MIB,
  maxListBytes: 64 * MIB,
  maxWatchLineBytes: 16 * MIB,
  /** Objects of one page of a listing. */
  pageSize: 500,
  /** Workloads of one kind in a cluster: a listing with more is refused, and of a watch no new ones are taken. */
  maxWorkloadsPerKind: 100_000,
  /** Calls open at once to one cluster, and calls that may wait behind them. */
  maxConcurrentCalls: 8,
  maxQueuedCalls: 64,
  /** A call that is too many for the server (429) is tried again after this long, even if it says at once. */
  minRetryAfterMs: 250,
  /** After this many calls in a row without any answer the cluster is left alone for a while. */
  circuitBreaker: { failureThreshold: 3, initialOpenMs: 500, maxOpenMs: 5_000 },
  /** How often a change that met a conflict is read again and tried again. */
  maxConflictRetries: 5,
  watch: {
    /** How long the server is asked to keep a watch, plus up to as much again at random. */
    timeoutS: 300,
    /** No byte for so long: the watch is taken for dead and begun anew. Bookmarks come about once a minute. */
    silenceTimeoutMs: 90_000,
    retry: { initialDelayMs: 800, maxDelayMs: 30_000 },
  },
  /** The token of the pod's service account is read again after this long. */
  podTokenTtlMs: 60_000,
  idleMinutes: { default: 30, min: 1, max: 43_200 },
  /** Sleeps the sweeper has under way at once. */
  maxConcurrentSleeps: 4,
  /** From so many sleeps of its own on that were undone in a row, each within `soonMs`, auto-sleep leaves a workload alone. */
  undone: { max: 2, withinMs: 900_000 },
  /** After a restart of its actor the sweeper waits until tethers have reported their traffic. */
  sweeperStartDelayMs: 60_000,
  /** Activity is in the store this long after it happened at the latest. */
  activityFlushMs: 1_000,
  /** Rows told to the front at once: it stays answering in between. */
  rowsPerTell: 250,
} as const;

/** Tethers: docs/reference.md "Tethers", "Connections of a tether". */
export const TETHER = {
  maxLabelLength: 64,
  /** How long a connection may wait for a pod, and what it may have sent by then. */
  podWaitTimeoutMs: 60_000,
  maxPendingBytes: 64 * KIB,
  /** Connections that may wait for a pod: of one tether, and of one thread. */
  maxPending: 256,
  maxPendingPerThread: 1_000,
  /** Connections open at once through one tether. */
  maxConnections: 2_048,
  /** From a dial to the upgraded connection; from the request for a stream to the node's answer. */
  dialTimeoutMs: 10_000,
  streamOpenTimeoutMs: 2_000,
  /** Dials under way at once to one cluster, per tether. */
  maxConcurrentDials: 16,
  /** A connection whose pod could not be reached is tried again for so long, with pauses from first to max. */
  retryWindowMs: 5_000,
  /** The same when the pod is there and nobody in it takes the connection. */
  refusedRetryWindowMs: 1_000,
  retry: { initialDelayMs: 20, maxDelayMs: 500 },
  /** A pod that could not be reached gets no connection for so long if another one can. */
  podAvoidMs: 1_000,
  /** Pods are listed anew when one of them turns out to be gone, this long after the last listing began at the earliest. */
  minRelistIntervalMs: 1_000,
  /** How often it is looked after connections that wait; who is gone after this glance wakes nobody. */
  wakeCheckIntervalMs: 2_000,
  probeDelayMs: 10,
  /** Nodes say on the error stream what went wrong, this long after the data stream at the latest. */
  errorStreamTimeoutMs: 1_000,
  /** A line with a stream left behind is used again when the node has proven it clear, and never if it has not by then. */
  drainCheckTimeoutMs: 5_000,
  /** A stream whose client has gone must be closed by the node in this time, and bring no more than this. */
  streamCloseTimeoutMs: 30_000,
  /** Where the pod has yet to take what was sent: so long after the last sign of it; more such lines to a pod are given up. */
  stuckTimeoutMs: 300_000,
  maxStuckConnections: 16,
  maxDiscardedBytes: 256 * KIB,
  /** Nodes keep a record of every stream of a line until the line is closed. */
  maxStreamsPerConnection: 2_000,
  pingIntervalMs: 25_000,
  /** A line on which something has come in this time is alive. */
  assumedAliveMs: 1_000,
  /** Lines that nobody uses are closed after this long, the last one to a pod after `lastIdleMs`. */
  connectionIdleMs: 60_000,
  lastConnectionIdleMs: 600_000,
  /** More than this unsent in one direction holds back the other end of that direction. */
  maxBufferedBytes: 256 * KIB,
  /** A client whose pod has closed gets what is left, and then so long to close as well. */
  closeLingerMs: 5_000,
  /** A way to make lines that a cluster does not offer is tried again after this long. */
  transportRetryMs: 300_000,
  /** A client that has half-closed keeps its connection until the pod has been silent for so long. */
  halfClosedIdleMs: 60_000,
  /** What a client has sent that has gone since is carried if that is possible in this time. */
  clientGoneGraceMs: 1_000,
  /** A tether whose actor has ended is opened again after this long. */
  reopenDelayMs: 1_000,
  /** How often changed numbers are told, and half-closed and waiting clients are looked at. */
  tickIntervalMs: 1_000,
  trafficReportIntervalMs: 15_000,
} as const;

/** Threads and actors. */
export const THREADS = {
  services: 1,
  tethers: 2,
  restarts: { max: 5, withinMs: 60_000 },
  askDeadlineMs: 30_000,
  /** A thread that has not stopped its actors by then is ended. */
  stopTimeoutMs: 20_000,
  /** Letters that may wait at an actor that clients write to; one more is `daemon_busy`. */
  mailboxCapacity: 4_096,
  /** A process host that was started answers within this time, or the daemon does not start. */
  hostStartTimeoutMs: 10_000,
} as const;

/** The pool of job threads: pure functions on heavy or untrusted input. */
export const JOBS = {
  maxThreads: 2,
  /** Jobs that may wait; one more is refused. */
  maxQueued: 64,
  deadlineMs: 5_000,
  /** A thread without work ends after this long. */
  idleTimeoutMs: 10_000,
  maxHeapMB: 256,
} as const;

/** Pairs that must hold; `test/readme.test.ts` checks each. */
export const INVARIANTS: readonly [why: string, holds: boolean][] = [
  [
    'the largest query may ask for the default wait',
    HTTP.maxQueryDurationMs >= SERVICE.defaultStartTimeoutMs,
  ],
  ['one line must fit in what a follower may buffer', LOGS.maxLineBytes * 4 <= EVENTS.maxUnsentBytes],
  [
    'a viewer that reads is not disconnected',
    AGENT.maxUnsentBytes > AGENT.maxUnacknowledgedBytes + AGENT.replayBytes,
  ],
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
    'a client that is held is not given up before a pod is dialled',
    TETHER.podWaitTimeoutMs > TETHER.dialTimeoutMs,
  ],
  [
    'a stale list of pods is renewed before a client is given up',
    TETHER.retryWindowMs >= 2 * TETHER.minRelistIntervalMs,
  ],
  [
    'traffic is told before anybody is put to sleep after a restart',
    TETHER.trafficReportIntervalMs < CLOUD.sweeperStartDelayMs,
  ],
  [
    'the ready-check slows down only after its fast time',
    READY_CHECK.fastPhaseMs * READY_CHECK.elapsedFraction >= READY_CHECK.fastIntervalMs,
  ],
];
