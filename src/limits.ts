// The numbers that users or several files depend on, and at the end the relations between them that the code relies on.
// What is of one file alone, such as a pause between two looks, stands there.

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** HTTP: docs/reference.md "Bodies", "Query values". */
export const HTTP = {
  bodyBytes: MIB,
  kubeconfigBytes: 256 * KIB,
  /** A body not complete this long after its head: 408. */
  bodyMs: 8_000,
  headMs: 10_000,
  /** Of a body that is too large this much more is read and dropped, so that its sender can read the 413. */
  drainBytes: 8 * MIB,
  /** On average once in so many bytes of answers it is made sure that the client of one takes what it asks for. */
  unseenBytes: 256 * KIB,
  /** How deep arrays and objects may lie in each other. */
  jsonDepth: 32,
  /** A wrong body is told at most so many of its faults one by one: more than all the fields that a right one can have. */
  details: 1_000,
  /** How many events the history gives when it is not said. */
  historyEvents: 100,
  /** The largest value of a duration in a query. */
  queryMs: 3_600_000,
} as const;

/** Services: docs/reference.md "Fields of a service", "Numbers". */
export const SERVICE = {
  startTimeoutMs: 30_000,
  stopGraceMs: 5_000,
  cmdBytes: 64 * KIB,
  /** Of the working directory, and of the ready URL. */
  cwdBytes: 4 * KIB,
  readyBytes: 4 * KIB,
  envEntries: 256,
  envBytes: 64 * KIB,
  dependsOn: 64,
  labels: 16,
  labelLength: 256,
  /** Without a ready URL a service is ready when its process has been up this long. */
  upMs: 50,
  restart: { firstMs: 100, maxMs: 30_000, resetAfterMs: 10_000 },
  /** After SIGKILL the answer of a stop waits at most this long. */
  afterKillMs: 2_000,
  /** How many last lines a hint or an explanation carries. */
  hintLines: 20,
  /** How often a process host that does not answer is asked again, and how long one question may take. */
  lookMs: 500,
  runOfMs: 5_000,
  /** How often an end that could not be written down is tried again. */
  recordMs: 1_000,
  /** What a stop may take beyond its grace period and the kill before the host counts as gone. */
  stopSpareMs: 10_000,
  /** The actor of a service that was removed answers so long that there is none. */
  retiredMs: 1_000,
  /** The deadline of an ask that waits for a start or a stop: longer than any of them. */
  askMs: 3 * 3_600_000,
  /** At the daemon's own end services are stopped in order for so long, then all the others, and so long is waited for them. */
  shutdown: { orderedMs: 20_000, restMs: 3_000 },
} as const;

/** docs/reference.md "Ready-check". */
export const READY = {
  fastMs: 20,
  fastForMs: 2_000,
  /** Afterwards the pause is this part of the time waited, at most `slowestMs`. */
  share: 0.05,
  slowestMs: 500,
  agentSlowestMs: 1_000,
  probeMs: 2_000,
  atOnce: 64,
} as const;

/** Events: docs/reference.md "Event stream", "Replay and retention". */
export const EVENTS = {
  kept: 1_024,
  statsMs: 2_000,
  retryMs: 1_000,
  /**
   * Well under the 10 s after which uWebSockets.js gives up on a blocked connection, and the 15 s promised.
   */
  commentMs: 5_000,
  /** A subscriber with more than this unsent is disconnected. */
  bufferBytes: MIB,
  /** After events have been written to many subscribers the next ones wait as long as that has taken, at most so long. */
  restMs: 50,
  /** Ids are reserved on disk this far ahead, so that they still grow after a crash of the machine. */
  idsAhead: 10_000,
} as const;

/** Logs: docs/reference.md "Logs of a service", "Log files". */
export const LOGS = {
  lines: 50,
  maxLines: 1_000,
  lineBytes: 64 * KIB,
  /** Tails longer than this are shown one at a time. */
  longTailBytes: 4 * MIB,
} as const;

/** Agents: docs/reference.md "Terminals", "Attach". */
export const AGENT = {
  cols: 120,
  rows: 32,
  /** The most columns, and the most rows, a terminal may have. */
  mostCells: 1_000,
  /** A terminal is told a new size at most this often. */
  resizeMs: 20,
  viewerBytes: MIB,
  screenBytes: MIB,
  /** A viewer with more than this unsent is disconnected: a screen, what it may owe, and as much again. */
  waitingBytes: 4 * MIB,
} as const;

/** Clusters and workloads: docs/reference.md "Cloud". */
export const CLOUD = {
  nameLength: 128,
  providerLength: 64,
  yamlDepth: 20,
  tokenBytes: 16 * KIB,
  caCertificates: 20,
  rsaBits: 2_048,
  /** An address must answer a connect and its TLS handshake in this time. */
  dialMs: 10_000,
  headersMs: 10_000,
  /** A whole call with its body; listings have more. */
  callMs: 20_000,
  listMs: 60_000,
  /** A client's wait for a sync; the sync itself goes on. */
  syncMs: 120_000,
  /** A sleep or wake with everything that may have to be done again. */
  changeMs: 120_000,
  /** `?wait=true` waits this long for a Ready pod unless `timeout` says otherwise. */
  wakeMs: 60_000,
  /** An object has at most 1.5 MiB in etcd, and the notes of who manages its fields besides. */
  objectBytes: 4 * MIB,
  listBytes: 64 * MIB,
  watchLineBytes: 16 * MIB,
  /** Objects of one page of a listing. */
  page: 500,
  /** Workloads of one kind in a cluster: a listing with more is refused, and of a watch no new ones are taken. */
  rows: 100_000,
  /** Calls open at once to one cluster, and calls that may wait behind them. */
  calls: 8,
  waiting: 64,
  /** A call that is too many for the server (429) is tried again after this long, even if it says at once. */
  againMs: 250,
  /** After this many calls in a row without any answer the cluster is left alone for a while. */
  breaker: { after: 3, firstMs: 500, maxMs: 5_000 },
  /** How often a change that met a conflict is read again and tried again. */
  conflicts: 5,
  watch: {
    /** How long the server is asked to keep a watch, plus up to as much again at random. */
    timeoutS: 300,
    /** No byte for so long: the watch is taken for dead and begun anew. Bookmarks come about once a minute. */
    silentMs: 90_000,
    retry: { firstMs: 800, maxMs: 30_000 },
  },
  /** The token of the pod's service account is read again after this long. */
  podTokenMs: 60_000,
  idleMinutes: { fallback: 30, least: 1, most: 43_200 },
  /** Sleeps the sweeper has under way at once. */
  sweepAtOnce: 4,
  /** From so many sleeps of its own on that were undone in a row, each within `soonMs`, auto-sleep leaves a workload alone. */
  undone: { most: 2, soonMs: 900_000 },
  /** After a restart of its actor the sweeper waits until tethers have reported their traffic. */
  settleMs: 60_000,
  /** Activity is in the store this long after it happened at the latest. */
  activityMs: 1_000,
  /** Rows told to the front at once: it stays answering in between. */
  rowsPerTell: 250,
} as const;

/** Tethers: docs/reference.md "Tethers", "Connections of a tether". */
export const TETHER = {
  labelLength: 64,
  /** How long a connection may wait for a pod, and what it may have sent by then. */
  holdMs: 60_000,
  heldBytes: 64 * KIB,
  /** Connections that may wait for a pod: of one tether, and of one thread. */
  held: 256,
  heldPerThread: 1_000,
  /** Connections open at once through one tether. */
  connections: 2_048,
  /** From a dial to the upgraded connection; from the request for a stream to the node's answer. */
  dialMs: 10_000,
  openMs: 2_000,
  /** Dials under way at once to one cluster, per tether. */
  dials: 16,
  /** A connection whose pod could not be reached is tried again for so long, with pauses from first to max. */
  retryMs: 5_000,
  /** The same when the pod is there and nobody in it takes the connection. */
  refusedMs: 1_000,
  retry: { firstMs: 20, maxMs: 500 },
  /** A pod that could not be reached gets no connection for so long if another one can. */
  avoidMs: 1_000,
  /** Pods are listed anew when one of them turns out to be gone, this long after the last listing began at the earliest. */
  doubtMs: 1_000,
  /** How often it is looked after connections that wait; who is gone after this glance wakes nobody. */
  rouseMs: 2_000,
  glanceMs: 10,
  /** Nodes say on the error stream what went wrong, this long after the data stream at the latest. */
  errorMs: 1_000,
  /** A line with a stream left behind is used again when the node has proven it clear, and never if it has not by then. */
  proofMs: 5_000,
  /** A stream whose client has gone must be closed by the node in this time, and bring no more than this. */
  endingMs: 30_000,
  /** Where the pod has yet to take what was sent: so long after the last sign of it; more such lines to a pod are given up. */
  stuckMs: 300_000,
  stuckLines: 16,
  droppedBytes: 256 * KIB,
  /** Nodes keep a record of every stream of a line until the line is closed. */
  streamsPerLine: 2_000,
  pingMs: 25_000,
  /** A line on which something has come in this time is alive. */
  freshMs: 1_000,
  /** Lines that nobody uses are closed after this long, the last one to a pod after `lastIdleMs`. */
  idleMs: 60_000,
  lastIdleMs: 600_000,
  /** More than this unsent in one direction holds back the other end of that direction. */
  bufferBytes: 256 * KIB,
  /** A client whose pod has closed gets what is left, and then so long to close as well. */
  lingerMs: 5_000,
  /** A way to make lines that a cluster does not offer is tried again after this long. */
  wayAgainMs: 300_000,
  /** A client that has half-closed keeps its connection until the pod has been silent for so long. */
  halfClosedMs: 60_000,
  /** What a client has sent that has gone since is carried if that is possible in this time. */
  goneMs: 1_000,
  /** A tether whose actor has ended is opened again after this long. */
  reopenMs: 1_000,
  /** How often changed numbers are told, and half-closed and waiting clients are looked at. */
  tickMs: 1_000,
  trafficMs: 15_000,
} as const;

/** Threads and actors. */
export const THREADS = {
  services: 1,
  tethers: 2,
  restarts: { max: 5, withinMs: 60_000 },
  askMs: 30_000,
  /** A thread that has not stopped its actors by then is ended. */
  stopMs: 20_000,
  /** Letters that may wait at an actor that clients write to; one more is `daemon_busy`. */
  mailbox: 4_096,
  /** A process host that was started answers within this time, or the daemon does not start. */
  hostMs: 10_000,
} as const;

/** The pool of job threads: pure functions on heavy or untrusted input. */
export const JOBS = {
  threads: 2,
  /** Jobs that may wait; one more is refused. */
  queue: 64,
  deadlineMs: 5_000,
  /** A thread without work ends after this long. */
  idleMs: 10_000,
  heapMB: 256,
} as const;

/** Pairs that must hold; `test/readme.test.ts` checks each. */
export const RELATIONS: readonly [why: string, holds: boolean][] = [
  ['the largest query may ask for the default wait', HTTP.queryMs >= SERVICE.startTimeoutMs],
  ['one line must fit in what a follower may buffer', LOGS.lineBytes * 4 <= EVENTS.bufferBytes],
  ['a viewer that reads is not disconnected', AGENT.waitingBytes > AGENT.viewerBytes + AGENT.screenBytes],
  ['a kubeconfig is smaller than any body', HTTP.kubeconfigBytes <= HTTP.bodyBytes],
  ['an ask outlives the longest start and the stop after it', SERVICE.askMs > 2 * HTTP.queryMs],
  ['a shutdown waits for what is killed', SERVICE.shutdown.restMs > SERVICE.afterKillMs],
  ['a dead watch is found before a good one ends', CLOUD.watch.silentMs < CLOUD.watch.timeoutS * 1_000],
  ['an API server may answer for as long as it is dialled', CLOUD.callMs >= CLOUD.dialMs],
  ['a client that is held is not given up before a pod is dialled', TETHER.holdMs > TETHER.dialMs],
  ['a stale list of pods is renewed before a client is given up', TETHER.retryMs >= 2 * TETHER.doubtMs],
  ['traffic is told before anybody is put to sleep after a restart', TETHER.trafficMs < CLOUD.settleMs],
  ['the ready-check slows down only after its fast time', READY.fastForMs * READY.share >= READY.fastMs],
];
