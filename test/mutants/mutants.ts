// The mutations of `npm run mutants`: each is a plausible mistake at a place where it would harm users.

export interface Mutant {
  id: string;
  area: string;
  /** What goes wrong with it. */
  about: string;
  file: string;
  /** Text that is in the file exactly once. */
  find: string;
  replace: string;
  /** The tests that should notice. */
  tests: readonly string[];
}

type Row = readonly [
  id: string,
  about: string,
  file: string,
  find: string,
  replace: string,
  tests: readonly string[],
];

const area = (name: string, rows: readonly Row[]): Mutant[] =>
  rows.map(([id, about, file, find, replace, tests]) => ({
    id,
    area: name,
    about,
    file,
    find,
    replace,
    tests,
  }));

const RUNTIME = ['test/runtime'];
const STOPS = ['test/host/stop_steps.test.ts', 'test/host/stop_tree.test.ts'];
const LEDGER = [
  'test/host/ledger_order.test.ts',
  'test/host/run_ledger.test.ts',
  'test/host/disk_full.test.ts',
  'test/host/survival.test.ts',
];
const SERVICE = ['test/actors/service', 'test/actors/registry'];
const TETHERS = ['tethers', 'clients_and_pods', 'pod_watch', 'unready_pods'].map(
  (name) => `test/actors/tethers/${name}.test.ts`,
);
const CHANGES = ['sleep_wake', 'refused_changes', 'undone_sleep', 'shared_workload'].map(
  (name) => `test/actors/cloud/${name}.test.ts`,
);
const WATCH = ['test/adapters/kube/list_watch.test.ts'];
const FLOODS = ['test/front/server/floods.test.ts'];
const GUARD = ['test/front/api/guard.test.ts', 'test/front/api/access.test.ts'];
const EVENT_STREAMS = ['test/front/streams/event_hub.test.ts', 'test/front/streams/event_streams.test.ts'];
const GATEWAY = ['test/actors/gateway'];
const AUDIT = ['test/actors/cloud/cloud_operations.test.ts'];
const STORAGE = ['test/adapters/storage'];
const KUBECONFIG = ['test/adapters/kubeconfig'];
const RENEWAL = ['test/actors/cloud/token_renewal.test.ts'];

export const MUTANTS: readonly Mutant[] = [
  ...area('runtime', [
    [
      'mailbox-bound',
      'open deferred replies do not count in the bound of a mailbox',
      'src/runtime/mailbox.ts',
      'queue.length + this.openReplies >= this.type.limits.mailbox',
      'queue.length >= this.type.limits.mailbox',
      RUNTIME,
    ],
    [
      'expired-message',
      'a message that has expired is handled',
      'src/runtime/mailbox.ts',
      'if (envelope.expires > node.clock.monotonic()) this.run(envelope, this.handlers);',
      'this.run(envelope, this.handlers);',
      RUNTIME,
    ],
    [
      'crash-answers',
      'a crash leaves open replies unanswered',
      'src/runtime/mailbox.ts',
      'const open = this.current ? [this.current, ...this.openReplies] : this.openReplies;',
      'const open = this.current ? [this.current] : [];',
      RUNTIME,
    ],
    [
      'stop-refuses',
      'a stopping actor still takes messages',
      'src/runtime/mailbox.ts',
      "if (this.state === 'stopping') envelope.link.refuse(envelope.id, 'gone', address);\n    else if",
      'if',
      RUNTIME,
    ],
    [
      'close-flushes',
      'a closing link drops what the turn still had to send',
      'src/runtime/peer_link.ts',
      '    this.flush();\n    this.open = false;',
      '    this.open = false;',
      RUNTIME,
    ],
    [
      'close-fails-asks',
      'a closing link leaves its asks unsettled',
      'src/runtime/peer_link.ts',
      "for (const ask of this.asks.values()) rejectAsk(ask, new Failure('gone', `${this.peer}: ${reason}`));",
      '',
      RUNTIME,
    ],
  ]),
  ...area('host', [
    [
      'intent-first',
      'the intent of a start is not in the ledger before the process',
      'src/host/host_runs.ts',
      'if (!ledger.put(intent)) {',
      'if (ledger.rows.size < 0) {',
      LEDGER,
    ],
    [
      'end-recorded-first',
      'an end is told before it is in the ledger',
      'src/host/host_runs.ts',
      '    ledger.put(run.row);\n    logWriters.mark(',
      '    onEnded(end);\n    ledger.put(run.row);\n    logWriters.mark(',
      LEDGER,
    ],
    [
      'stop-recorded',
      'a stop under way is not in the ledger',
      'src/host/host_runs.ts',
      '      ledger.put(known.row);\n      known.stopCommand = commands',
      '      known.stopCommand = commands',
      LEDGER,
    ],
    [
      'two-empty-scans',
      'one empty scan counts as the end of a tree',
      'src/host/stop_tree.ts',
      'const EMPTY_SCANS = 2;',
      'const EMPTY_SCANS = 1;',
      STOPS,
    ],
    [
      'freeze-first',
      'processes are killed without being frozen first',
      'src/host/stop_tree.ts',
      'const MAX_FREEZE_ROUNDS = 10;',
      'const MAX_FREEZE_ROUNDS = 0;',
      STOPS,
    ],
    [
      'continue-stopped',
      'a stopped process is not continued to act on the stop signal',
      'src/host/stop_tree.ts',
      "    signalRun(target.root, fresh, 'SIGCONT');\n",
      '',
      STOPS,
    ],
    [
      'ledger-synced',
      'the ledger is never synced',
      'src/host/run_ledger.ts',
      '    file.size += bytes.length;\n    this.sync.request(file.fd);',
      '    file.size += bytes.length;',
      ['test/adapters/storage/durability.test.ts'],
    ],
    [
      'half-line-overwritten',
      'half a line of a full disk stays in the ledger',
      'src/host/run_ledger.ts',
      'bytes.length - done, file.size + done)',
      'bytes.length - done)',
      LEDGER,
    ],
    [
      'recycled-pid',
      'a signal goes to another process that has got the pid',
      'src/host/signals.ts',
      ' || (now && now.startTicks !== row.startTicks)',
      '',
      STOPS,
    ],
  ]),
  ...area('services', [
    [
      'restart-reset',
      'the attempts count anew only after more than 10 s',
      'src/actors/service/restart_policy.ts',
      'run.upMs >= SERVICE.restart.resetAfterMs',
      'run.upMs > SERVICE.restart.resetAfterMs',
      SERVICE,
    ],
    [
      'no-restart-after-timeout',
      "a client's start that timed out is restarted by policy",
      'src/actors/service/restart_policy.ts',
      '(timedOut && run.byPolicy)',
      'timedOut',
      SERVICE,
    ],
    [
      'reboot-restart',
      'a restart follows a reboot',
      'src/actors/service/restart_policy.ts',
      'const next = isReboot || !isUnasked ? null',
      'const next = !isUnasked ? null',
      SERVICE,
    ],
    [
      'revision-of-default',
      'a field that is absent in a stored record counts as a change',
      'src/actors/registry/registration_rules.ts',
      ' ?? value ?? SPEC_FIELDS[field].default',
      ' ?? value',
      SERVICE,
    ],
    [
      'env-order',
      'the order of env counts as a change',
      'src/actors/registry/registration_rules.ts',
      'env.toSorted(([a], [b]) => (a < b ? -1 : 1))',
      'env',
      SERVICE,
    ],
    [
      'crash-settled',
      'a stop of a crashed service leaves it crashed',
      'src/actors/service/machine.ts',
      "isKept ? end.status : 'stopped'",
      'end.status',
      SERVICE,
    ],
    [
      'registered-while-recorded',
      'a registration while an end is being written leaves its restart',
      'src/actors/service/machine.ts',
      '  state.backoff = null;\n',
      '',
      SERVICE,
    ],
    [
      'registered-while-recorded-later',
      'a registration while an end is being written leaves its restart to a later daemon',
      'src/actors/service/machine.ts',
      'life.record(state).then(() => life.cancelRestart())',
      'life.record(state)',
      SERVICE,
    ],
    [
      'end-as-told',
      'a stop that was told becomes a crash after a kill',
      'src/actors/service/run_events.ts',
      'if (status === end.status) return end;',
      'if (status) return end;',
      SERVICE,
    ],
    [
      'one-end',
      'a run has an event for each end that is told of it',
      'src/actors/events/kept_events.ts',
      "${ENDS.has(type) ? 'end' : type}",
      '${type}',
      ['test/actors/events'],
    ],
  ]),
  ...area('tethers', [
    [
      'no-second-sending',
      'bytes that a pod may have seen are sent to another one',
      'src/actors/tethers/session.ts',
      'session.retryOrReset(RETRYABLE.has(error.code) ? replay : null, error)',
      'session.retryOrReset(replay, error)',
      TETHERS,
    ],
    [
      'replay-bound',
      'what is kept for another attempt has no bound',
      'src/actors/tethers/held_connections.ts',
      'return this.size + bytes <= this.maxBytes && !this.held.isFull;',
      'return bytes > 0;',
      ['test/actors/tethers/held_connections.test.ts'],
    ],
    [
      'inactive-on-disk-first',
      'a listener is closed before the store says so',
      'src/actors/tethers/tether_records.ts',
      '    await this.save(tether, { active: false, localPort: null, previousPort: null }, false);\n    if (!stored.active && !forget) return;',
      '    if (!stored.active && !forget) return;',
      TETHERS,
    ],
    [
      'unstored-is-closed',
      'a listener that could not be stored stays open',
      'src/actors/tethers/tether_records.ts',
      "      ref.tell('close', { forget: false });\n",
      '',
      TETHERS,
    ],
    [
      'connections-bound',
      'one connection more than the bound is taken',
      'src/actors/tethers/tether_clients.ts',
      'this.router.size >= TETHER.maxConnections',
      'this.router.size > TETHER.maxConnections',
      TETHERS,
    ],
    [
      'last-traffic',
      'a closing tether does not report its last traffic',
      'src/actors/tethers/tether_clients.ts',
      '    this.reportActivity();\n    this.reportTraffic();\n  }\n\n  private onBytes',
      '    this.reportActivity();\n  }\n\n  private onBytes',
      TETHERS,
    ],
    [
      'released-pod',
      'a pod that its workload has released gets connections',
      'src/actors/tethers/pod_watch.ts',
      'if (gone || !row.isOwn) this.forget',
      'if (gone) this.forget',
      TETHERS,
    ],
    [
      'avoid-failed-pod',
      'a pod that has just failed is not avoided',
      'src/actors/tethers/used_pods.ts',
      'pod.avoidUntil = this.clock.monotonic() + ms;',
      'pod.avoidUntil = Math.min(ms, 0);',
      TETHERS,
    ],
    [
      'port-scan',
      'a client that has gone wakes the workload',
      'src/actors/tethers/workload_waker.ts',
      '      if (await waiters.areStillThere())\n        await workloads',
      '        await workloads',
      ['test/actors/tethers/workload_waker.test.ts'],
    ],
  ]),
  ...area('cloud', [
    [
      'gone-is-a-conflict',
      'an object that was replaced is no conflict',
      'src/actors/cloud/sleep.ts',
      '[404, 409, 422].includes',
      '[409].includes',
      CHANGES,
    ],
    [
      'unknown-outcome',
      'an answer 500 is not tried again',
      'src/actors/cloud/sleep.ts',
      'error.status.status >= 500',
      'error.status.status > 500',
      CHANGES,
    ],
    [
      'same-object',
      'a patch does not check that the object is the one that was read',
      'src/actors/cloud/sleep.ts',
      '[sameObject(fresh), ...steps]',
      '[...steps]',
      CHANGES,
    ],
    [
      'future-version',
      'a version from the future does not list anew',
      'src/adapters/kube/list_watch.ts',
      ' || /too large resource version/i.test(message)',
      '',
      WATCH,
    ],
    [
      'lively-watch',
      'a watch that says something is ended for its silence',
      'src/adapters/kube/list_watch.ts',
      '        cancelSilence();\n        cancelSilence = this.clock.after(CLOUD.watch.silenceTimeoutMs, stop);\n',
      '',
      WATCH,
    ],
  ]),
  ...area('front', [
    [
      'peer-checked',
      'peers of other machines are let in',
      'src/front/api/guard.ts',
      'if (this.checksPeer && !isLoopback(exchange.peerAddress()))',
      "if (exchange.peerAddress() === 'nobody')",
      GUARD,
    ],
    [
      'host-checked',
      'a Host of another name is let in',
      'src/front/api/guard.ts',
      'if (!this.hosts.has(host) && !this.isOurs(host))',
      "if (host === '')",
      GUARD,
    ],
    [
      'turn-bounded',
      'one client holds a turn of the event loop for as long as it likes',
      'src/front/server/turn_budget.ts',
      'return this.isSpent;',
      'return false;',
      FLOODS,
    ],
    [
      'pending-once',
      'a new subscriber gets pending events twice',
      'src/front/streams/event_hub.ts',
      '    this.flush();\n    const { key }',
      '    const { key }',
      EVENT_STREAMS,
    ],
    [
      'slow-subscriber',
      'a slow subscriber is never cut off',
      'src/front/streams/event_hub.ts',
      'if (stream.bufferedBytes > EVENTS.maxUnsentBytes) stream.destroy();',
      '',
      EVENT_STREAMS,
    ],
    [
      'reset-told',
      'a gap in the replay is not told',
      'src/front/streams/event_hub.ts',
      'return isComplete ? frames : [resetFrame(oldest), ...frames];',
      'return frames;',
      EVENT_STREAMS,
    ],
  ]),
  ...area('gateway', [
    [
      'two-origins',
      'the last of two Origin headers counts',
      'src/actors/gateway/request_headers.ts',
      "read.origin = read.origin === undefined ? value : 'null';",
      'read.origin = value;',
      GATEWAY,
    ],
    [
      'stale-idle',
      'an idle connection is used however old it is',
      'src/actors/gateway/upstream_pool.ts',
      "this.state.is === 'idle' && this.state.since > time && ",
      "this.state.is === 'idle' && ",
      GATEWAY,
    ],
  ]),
  ...area('agents', [
    [
      'prompt-over-question',
      'the key that submits a prompt is typed over a question',
      'src/actors/service/agent_prompts.ts',
      "if (status.state === 'blocked') throw await this.blocked(status, what);",
      "if (status.state === 'exited') throw await this.blocked(status, what);",
      ['test/actors/service/agent_prompts.test.ts'],
    ],
    [
      'prompt-in-turn',
      'two prompts are typed at the same time',
      'src/actors/service/agent_prompts.ts',
      '      await before;\n',
      '',
      ['test/actors/service/agent_prompts.test.ts'],
    ],
    [
      'fresh-conversation',
      'a wake begins a new conversation where there is one',
      'src/actors/service/agent_session.ts',
      'const before = isForced ? null : this.row;',
      'const before = null as StoredSession | null;',
      ['test/actors/service/agent_session.test.ts'],
    ],
    [
      'sleep-on-disk',
      'an agent is stopped before its sleep is on disk',
      'src/actors/service/agent_session.ts',
      '    await this.options.table.put(name, this.rowAsleep(run));\n',
      '    void this.options.table.put(name, this.rowAsleep(run));\n',
      ['test/actors/service/agent_session.test.ts'],
    ],
  ]),
  ...area('audit', [
    [
      'key-of-another',
      'a key answers another request',
      'src/actors/cloud/cloud_operations.ts',
      'if (known.fingerprint !== request.fingerprint)',
      "if (known.fingerprint === '')",
      AUDIT,
    ],
    [
      'told-twice',
      'an end that the journal has is told again',
      'src/actors/cloud/cloud_operations.ts',
      'const isThere = this.uncertain.has(row.id) && ',
      'const isThere = row.key === undefined && ',
      AUDIT,
    ],
    [
      'slept-twice',
      'an operation puts a workload to sleep again that something has woken',
      'src/actors/cloud/sleep.ts',
      'replicas === 0 || isSleptBy(fresh.seen, operation) || ',
      'replicas === 0 || ',
      AUDIT,
    ],
  ]),
  ...area('storage', [
    [
      'journal-synced',
      'sync() of the journal does nothing',
      'src/adapters/storage/segments.ts',
      '    fsyncSync(this.fd);\n',
      '',
      STORAGE,
    ],
    [
      'store-private',
      'a store that others can read stays so',
      'src/adapters/storage/store_file.ts',
      'if (isOpenToOthers(statSync(path))) chmodSync(path, 0o600);',
      '',
      STORAGE,
    ],
  ]),
  ...area('clusters', [
    [
      'first-file-wins',
      'the last file of $KUBECONFIG wins',
      'src/adapters/kubeconfig/kubeconfig_files.ts',
      '[...files].reverse().flatMap(',
      '[...files].flatMap(',
      KUBECONFIG,
    ],
    [
      'login-ended',
      'a login command that hangs is left running',
      'src/adapters/kubeconfig/exec_plugin.ts',
      "      killTree(child, isGroup, 'SIGKILL');\n",
      '',
      KUBECONFIG,
    ],
    [
      'renewed-token-used',
      'a new token is stored, and the old one used on',
      'src/actors/cloud/clusters.ts',
      '      await this.renew(id);\n      return true;',
      '      return true;',
      RENEWAL,
    ],
    [
      'renewal-retried',
      'a renewal that has failed is not tried again',
      'src/actors/cloud/token_renewals.ts',
      '    this.wait(id, this.clock.now() + pauseMs, Math.min(2 * pauseMs, retry.maxDelayMs));\n',
      '',
      RENEWAL,
    ],
  ]),
];
