// The numbers that users or several files depend on; cloud_limits.ts has those of clusters and tethers, and
// limit_invariants.ts the relations between them. A number used by a single file is in that file.

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** HTTP: docs/reference.md "Bodies", "Query values". */
export const HTTP = {
  maxBodyBytes: MIB,
  maxKubeconfigBytes: 256 * KIB,
  /** A body that is not complete this long after its head gets 408. */
  bodyTimeoutMs: 8_000,
  headTimeoutMs: 10_000,
  /**
   * How long a port of the daemon may be taken when it starts, because a killed predecessor takes a moment to
   * end, and how often it is tried meanwhile.
   */
  portReleaseMs: 500,
  portPollMs: 20,
  /** Memory of all bodies that are being received. */
  maxBodyBytesInFlight: 64 * MIB,
  /**
   * The shares of the process's descriptors for connections to the daemon's own address and to the cloud's.
   */
  connectionShare: { daemon: 0.5, cloud: 0.25 },
  /** The most connections to the cloud's own address that have not presented a token yet. */
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
  /** How long a call with `wait=false` is awaited: docs/reference.md "Calls that are not awaited". */
  unawaitedMs: 100,
  /** The largest duration in a query. */
  maxQueryDurationMs: 3_600_000,
} as const;

/**
 * Descriptors: docs/reference.md "Connections". Shares of the process's limit. Above `acceptForwarded` no
 * connection to be forwarded is accepted, above `dial` none is opened to a service, and above
 * `acceptRequests` none to the API is accepted. The rest is for logs, the store, threads and process
 * supervision.
 */
export const DESCRIPTORS = { acceptForwarded: 0.625, dial: 0.75, acceptRequests: 0.875, min: 128 } as const;

/** Files of the user that are read as a whole: the configuration, and project files of any tool. */
export const TEXT_FILE = {
  maxBytes: MIB,
  /** Nesting of tables and arrays in the configuration. */
  maxTomlDepth: 16,
} as const;

/** Services: docs/reference.md "Fields of a service", "Numeric limits and defaults". */
export const SERVICE = {
  defaultStartTimeoutMs: 30_000,
  defaultStopGraceMs: 5_000,
  maxCmdBytes: 64 * KIB,
  maxCwdBytes: 4 * KIB,
  maxReadyUrlBytes: 4 * KIB,
  maxEnvEntries: 256,
  maxEnvBytes: 64 * KIB,
  maxBaseEnvEntries: 1_024,
  maxBaseEnvBytes: 256 * KIB,
  maxDependsOn: 64,
  maxLabels: 16,
  maxLabelLength: 256,
  maxEnvFiles: 16,
  /** The highest count in a restart rule. */
  maxCountedRestarts: 1_000,
  minRestartPauseMs: 10,
  /** A service without a ready URL is ready once its process has been up this long. */
  minUptimeMs: 50,
  restart: { initialDelayMs: 100, maxDelayMs: 30_000, resetAfterMs: 10_000 },
  /** Longest wait of a stop after SIGKILL. */
  killTimeoutMs: 2_000,
  /** Last lines of the log in a hint or an explanation. */
  hintLines: 20,
  /** The interval between requests to a process host that does not answer, and the deadline of each. */
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
  askDeadlineMs: 25 * 3_600_000,
  /** Longest wait of a start for the end of a task; the task goes on. */
  taskWaitMs: 24 * 3_600_000,
  /**
   * On shutdown: the time for the ordered stop, then for everything that is left. If the process host does
   * not answer, a stop is requested again for `hostReturnMs`, every `hostRetryMs`, because a new host may be
   * starting.
   */
  shutdown: { orderedStopMs: 20_000, remainingStopMs: 3_000, hostReturnMs: 10_000, hostRetryMs: 100 },
  /** A daemon that is still alive this long after the signal ends by that signal. */
  endMs: 60_000,
  /** How long the removal of a stack waits for its hook. */
  hookMs: 600_000,
} as const;

/** docs/reference.md "Tasks". */
export const TASK = {
  maxInputGlobs: 64,
  maxInputFiles: 100_000,
  /** The time limit for hashing the files of a task. */
  hashTimeoutMs: 60_000,
  /** The number of tasks whose files are hashed at once. */
  hashThreads: 4,
} as const;

/** docs/reference.md "Schedules". */
export const SCHEDULE = {
  /** A scheduled run may start this late, as on a busy machine; after that it counts as missed. */
  lateMs: 60_000,
  /** The clock may be set back by this much without a time occurring twice. */
  setBackMs: 3 * 3_600_000,
  /** The longest time between two checks of the clock while there is a schedule. */
  lookMs: 30_000,
  /** The interval between attempts to start a task that did not respond, and the deadline of each. */
  retryMs: 1_000,
  startMs: 90_000,
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
  /** Shortest pause between two probes that start a process. */
  minExecIntervalMs: 100,
  maxConcurrent: 64,
  /** The time after which a slow probe no longer counts for `maxConcurrent` and `maxConcurrentExecs`. */
  slowMs: 2_000,
} as const;

/** Commands beside a service: docs/reference.md "Commands". */
export const COMMAND = {
  /** A command whose terminal has not been attached by then is dropped. */
  attachTimeoutMs: 10_000,
  /** The most commands waiting for their terminals, with environments of up to 320 KiB each. */
  maxWaiting: 64,
  /** How to end a command whose terminal is gone. */
  stop: { signal: 'SIGHUP', graceMs: 5_000 },
} as const;

/** Files that are watched: docs/reference.md "Watch". */
export const WATCH = {
  maxGlobs: 64,
  maxGlobLength: 1_024,
  /**
   * The most stars in one name of a glob, and `**` in all of it: more could keep its matcher busy for
   * minutes.
   */
  maxStars: 3,
  /** The most combinations of the alternatives of a glob: a matcher may try them all. */
  maxAlternatives: 64,
  defaultDebounceMs: 300,
  maxDebounceMs: 60_000,
  /** Files that keep changing are reported this long after the first change. */
  maxDelayMs: 30_000,
  /** The number of changed files named in the event. */
  reportedPaths: 5,
  /** The most folders of one service, in case it watches `/` by mistake. */
  maxFolders: 50_000,
  /** The pause before watches that the system has refused are requested again. */
  retryMs: 30_000,
} as const;

/** Ready- and live-checks: docs/reference.md "Checks". */
export const CHECK = {
  /** Time of one probe. */
  timeoutMs: 2_000,
  liveIntervalMs: 10_000,
  /** The number of consecutive failed live-checks that ends a process. */
  failures: 3,
  maxFailures: 1_000,
  minIntervalMs: 20,
  /** The most concurrent probes that start a process, over all services. */
  maxConcurrentExecs: 8,
  /** How much of such a process's output is kept to show to people. The rest is read and dropped. */
  keptOutputBytes: 2 * KIB,
  /** How much of a body is searched for a match. */
  maxBodyBytes: 64 * KIB,
  maxPatternBytes: KIB,
  maxHeaders: 16,
  maxHeaderBytes: 4 * KIB,
  /** Bytes of a log that are matched in one step. */
  logStepBytes: 64 * KIB,
} as const;

/** Limits of a run: docs/reference.md "Resource limits". */
export const RUN_LIMITS = {
  minMemoryMB: 4,
  maxMemoryMB: 16 * 1024 * 1024,
  minCpus: 0.01,
  maxCpus: 4_096,
  maxPids: 4_194_304,
} as const;

/** Events: docs/reference.md "Event stream", "Replay and retention". */
export const EVENTS = {
  retained: 1_024,
  /** Allocated for events other than statistics that a full disk keeps out of the journal. */
  reserveBytes: 256 * KIB,
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
  /** Of one agent or person, by their own token. */
  maxOpenPerHolder: 1_024,
  /** The unread data of all clients together. Those with the most are cut off. */
  maxUnreadBytes: 128 * MIB,
  checkIntervalMs: 500,
} as const;

/** The store: docs/reference.md "State directory", "Full disk". */
export const STORE = {
  /** Blocks reserved for ends, marks and removals once the disk is full. */
  reserveBytes: 256 * KIB,
  /** The size of the blocks allocated ahead of use. */
  growthBytes: 512 * KIB,
  /** Interval between attempts to allocate the reserve anew. */
  renewalMs: 1_000,
  /** The first copy of the store is made this long after a start, the next ones at this interval. */
  firstCopyMs: 10_000,
  copyIntervalMs: 300_000,
  /** The interval for a store whose last copy was larger than `largeCopyBytes`, also across restarts. */
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
  /** The most services whose logs are read together: a cursor with a number for each must fit in a header. */
  maxServices: 256,
  /** Lines of many services in an answer. */
  defaultPageLines: 100,
  /** The size after which an answer ends. */
  maxPageBytes: 4 * MIB,
  /** After this time a search answers with what it has found. */
  searchMs: 800,
  maxQueryLength: 256,
  /** Lines before, and lines after, a line that is found. */
  maxContextLines: 100,
  /** The most last lines of a service with which a stream of many may begin. */
  maxTailLines: 100_000,
  /** How much text and time one read of followed logs may take, and the shortest pause between two reads. */
  maxReadBytes: 512 * KIB,
  readMs: 50,
  followIntervalMs: 25,
  /** The most waiting reads; above it, streams are ended, and their clients reconnect. */
  maxFollowJobs: 1_024,
  /** The time limit of a search or stream job, including its wait for a thread. */
  jobDeadlineMs: 30_000,
  /** How many lines are formatted at a time for followers of one log. */
  maxStepLines: 1_000,
  /** How much formatted text is kept for followers that reach the same position a little later. */
  maxSharedBytes: 8 * MIB,
} as const;

/** The page at `/`: docs/reference.md "Dashboard sessions". */
export const PAGE = {
  /** How long a code for opening the page is valid. */
  codeMs: 300_000,
  /** The most open codes; a further one invalidates the oldest. */
  maxCodes: 64,
  /** How long a page's key is valid; reloading the page renews it. */
  sessionMs: 7 * 24 * 3_600_000,
} as const;

/** The logs of the process host and of a daemon in the background: docs/reference.md "State directory". */
export const OWN_LOG = {
  /** Above this size, the end of the log is kept as `.1`, and a new log begins. */
  maxBytes: MIB,
  checkIntervalMs: 1_000,
} as const;

/** Doors of services that may sleep: docs/reference.md "Sleep of services". */
export const DOOR = {
  /** The longest wait of a client for a service that is waking. */
  holdMs: 60_000,
  /** The most connections through one door, and how many of them may wait. */
  maxConnections: 4_096,
  maxHeld: 1_024,
  /** How often to check waiting clients, while there are any. */
  checkIntervalMs: 1_000,
  /** A client that closes within this time, such as a port scan, wakes nothing. */
  probeDelayMs: 10,
  /** Shortest interval between two requests to wake the service. */
  knockIntervalMs: 1_000,
  /**
   * The pause before a service that refuses is tried again, and how long to retry one that has accepted
   * before.
   */
  redialMs: 20,
  refusedRetryMs: 1_000,
  /** The pause before a port taken by another program is tried again. */
  reopenMs: 1_000,
  minIdleMs: 1_000,
  maxIdleMinutes: 43_200,
} as const;

/** Threads and actors. */
export const THREADS = {
  restarts: { max: 5, withinMs: 60_000 },
  /**
   * The pause before each further start of a thread that died more often:
   * docs/reference.md "Crash of a thread".
   */
  pauseMs: 10_000,
  /**
   * A thread hangs when it has missed `missedBeats` consecutive beats, `beatMs` apart, and has meanwhile used
   * `maxStepCpuMs` of processor time or waited in the system all the time. No step of Berth takes a tenth of
   * that. If it has not ended after another `endMs`, the process ends.
   */
  hang: { beatMs: 1_000, missedBeats: 5, maxStepCpuMs: 2_500, endMs: 5_000 },
  askDeadlineMs: 30_000,
  /** How long a reading waits for a thread or the process host: docs/reference.md "Metrics". */
  readTimeoutMs: 1_000,
  /** A thread that has not stopped its actors after this time is terminated. */
  stopTimeoutMs: 20_000,
  /** The most waiting messages of an actor that clients write to; above it they get `daemon_busy`. */
  mailboxCapacity: 4_096,
  /** Time for a process host to answer after its start; without an answer the daemon does not start. */
  hostStartTimeoutMs: 10_000,
} as const;

/** docs/reference.md "Notices". */
export const NOTICE = {
  /** At most one notice per rule, type and name is sent in this time. */
  perKeyMs: 60_000,
  /** The time limit of a target for one notice. */
  timeoutMs: 10_000,
  /** The pauses after failures, each twice the previous one. */
  minBackoffMs: 1_000,
  maxBackoffMs: 300_000,
  /** A notice that could not be delivered for this long is given up. */
  keepMs: 86_400_000,
  /** The most waiting notices of one rule; above it the oldest is dropped. */
  maxWaiting: 500,
  maxDataBytes: 16 * 1024,
  maxTextLength: 500,
  /** How often to check what is due, whatever the clock does. */
  lookMs: 60_000,
} as const;

/** docs/reference.md "Metrics". */
export const METRICS = {
  /** The most workloads with metrics of their own; above it they are summed per namespace. */
  maxWorkloads: 2_000,
} as const;

/** The pool of job threads: pure functions on heavy or untrusted input. */
export const JOBS = {
  maxThreads: 2,
  /** The most waiting jobs; further ones are refused. */
  maxQueued: 64,
  deadlineMs: 5_000,
  /** A thread without work ends after this time. */
  idleTimeoutMs: 10_000,
  maxHeapMB: 256,
} as const;
