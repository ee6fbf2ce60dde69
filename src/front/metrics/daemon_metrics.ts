// Every metric of services and of the daemon itself: docs/reference.md "Metrics".
import { AGENT_STATES } from '../../protocol/agent_state.ts';
import { SERVICE_STATUSES } from '../../protocol/service.ts';
import type { LogBytes, SystemReading, ThreadReading } from '../../protocol/system.ts';
import type { ServiceParts } from '../views/service_json.ts';
import type { Metric, Sample } from './open_metrics.ts';
import { START_BUCKETS, type StartHistogram } from './start_times.ts';

/** Everything that the metrics are made of, at one moment. */
export interface DaemonReading {
  version: string;
  /** Epoch milliseconds. */
  startedAt: number;
  services: readonly MeasuredService[];
  starts: (name: string) => StartHistogram | null;
  requests: readonly { operation: string; status: number; count: number }[];
  openStreams: number;
  system: SystemReading;
}

/** A service with the processor time it has used so far, in seconds. */
export type MeasuredService = ServiceParts & { readonly cpuSeconds: number };

type Row = Metric<DaemonReading>;
type Labels = Sample['labels'];

const one = (value: number, labels: Labels = {}): Sample[] => [{ labels, value }];

const isAgent = ({ spec }: ServiceParts): boolean => spec.agent !== null;
const serviceLabels = ({ spec }: ServiceParts): Labels => ({
  service: spec.name,
  group: spec.group ?? '',
  stack: spec.stack ?? '',
});

/** A metric with one value per service; null: the service has none. */
const perService = (
  { name, type, help }: Omit<Row, 'samples'>,
  value: (parts: MeasuredService) => number | null,
): Row => ({
  ...{ name, type, help },
  samples: ({ services }) =>
    services.flatMap((parts) => {
      const measured = value(parts);
      return measured === null ? [] : one(measured, serviceLabels(parts));
    }),
});

const perThread = (
  { name, type, help }: Omit<Row, 'samples'>,
  value: (reading: ThreadReading) => number,
): Row => ({
  ...{ name, type, help },
  samples: ({ system }) =>
    system.threads.flatMap((thread) =>
      thread.reading ? one(value(thread.reading), { thread: thread.name }) : [],
    ),
});

const perLog = ({ name, help }: Pick<Row, 'name' | 'help'>, value: (log: LogBytes) => number): Row => ({
  ...{ name, help, type: 'counter' },
  samples: ({ system }) =>
    system.host?.logs.flatMap((log) => one(value(log), { service: log.service })) ?? [],
});

/** The latest measurement, unless it is of an earlier process. */
const measuredOf = ({ state, stats }: ServiceParts) =>
  stats && stats.run === state?.process?.run ? stats : null;

function startSamples(parts: ServiceParts, { buckets, count, sum }: StartHistogram): Sample[] {
  const labels = serviceLabels(parts);
  const bounds = [...START_BUCKETS.map(String), '+Inf'];
  return [
    ...bounds.map((le, index) => ({
      labels: { ...labels, le },
      value: buckets[index] ?? count,
      part: '_bucket',
    })),
    { labels, value: sum, part: '_sum' },
    { labels, value: count, part: '_count' },
  ];
}

const SERVICE_METRICS: readonly Row[] = [
  perService(
    { name: 'berth_service_up', type: 'gauge', help: 'Whether the service is running and ready.' },
    ({ state }) => (state?.status === 'running' ? 1 : 0),
  ),
  perService(
    {
      name: 'berth_service_restarts',
      type: 'counter',
      help: 'Restarts by policy since a client has started the service.',
    },
    ({ state }) => state?.restarts ?? 0,
  ),
  perService(
    {
      name: 'berth_service_cpu_seconds',
      type: 'counter',
      help: 'Processor time of the process tree, measured every two seconds.',
    },
    ({ cpuSeconds }) => cpuSeconds,
  ),
  perService(
    {
      name: 'berth_service_memory_working_set_bytes',
      type: 'gauge',
      help: 'Resident memory of the process tree.',
    },
    (parts) => {
      if (!parts.state?.process) return null;
      return (measuredOf(parts)?.rssMB ?? parts.state.process.rssMB) * 1_048_576;
    },
  ),
  {
    name: 'berth_service_start_seconds',
    type: 'histogram',
    help: 'Time from the start of the process until the service was ready.',
    samples: ({ services, starts }) =>
      services.flatMap((parts) => {
        const histogram = starts(parts.spec.name);
        return histogram ? startSamples(parts, histogram) : [];
      }),
  },
  {
    name: 'berth_agent_states',
    type: 'gauge',
    help: 'Agents by what they are doing.',
    samples: ({ services }) =>
      AGENT_STATES.flatMap((state) => {
        const isSo = (parts: MeasuredService) => isAgent(parts) && (parts.agent?.state ?? 'exited') === state;
        return one(services.filter(isSo).length, { state });
      }),
  },
  {
    name: 'berth_agents',
    type: 'gauge',
    help: 'Agents by status.',
    samples: ({ services }) =>
      SERVICE_STATUSES.flatMap((status) =>
        one(
          services.filter((parts) => isAgent(parts) && (parts.state?.status ?? 'stopped') === status).length,
          {
            status,
          },
        ),
      ),
  },
  perLog(
    { name: 'berth_log_bytes', help: 'Output of the service since its log began.' },
    ({ bytes }) => bytes,
  ),
  perLog(
    { name: 'berth_log_dropped_bytes', help: 'Output of the service that was lost to a full disk.' },
    ({ dropped }) => dropped,
  ),
];

const NOTICE_RESULTS = ['delivered', 'failed', 'dropped'] as const;

/** Two targets may look the same, so their position in the configuration tells them apart. */
const noticeLabels = ({ target }: { target: string }, index: number): Labels => ({
  notify: String(index),
  target,
});

const PROCESS_METRICS: readonly Row[] = [
  {
    name: 'berth_build_info',
    type: 'gauge',
    help: 'The version of the daemon.',
    samples: ({ version }) => one(1, { version }),
  },
  {
    name: 'berth_start_time_seconds',
    type: 'gauge',
    help: 'Start of the daemon, in seconds of the epoch.',
    samples: ({ startedAt }) => one(startedAt / 1_000),
  },
  {
    name: 'berth_resident_memory_bytes',
    type: 'gauge',
    help: 'Resident memory of the daemon.',
    samples: ({ system }) => one(system.rssBytes),
  },
  {
    name: 'berth_http_requests',
    type: 'counter',
    help: 'Answers by operation and status; the operation is empty for requests that reach none.',
    samples: ({ requests }) =>
      requests.flatMap(({ operation, status, count }) => one(count, { operation, code: String(status) })),
  },
  {
    name: 'berth_open_streams',
    type: 'gauge',
    help: 'Open streams of events and logs.',
    samples: ({ openStreams }) => one(openStreams),
  },
  {
    name: 'berth_thread_up',
    type: 'gauge',
    help: 'Whether the thread answers.',
    samples: ({ system }) =>
      system.threads.flatMap(({ name, reading }) => one(reading ? 1 : 0, { thread: name })),
  },
  {
    name: 'berth_thread_restarts',
    type: 'counter',
    help: 'Deaths of the thread.',
    samples: ({ system }) => system.threads.flatMap(({ name, restarts }) => one(restarts, { thread: name })),
  },
  perThread(
    {
      name: 'berth_event_loop_lag_seconds',
      type: 'gauge',
      help: 'Longest delay of a timer of the thread in the last minute.',
    },
    ({ lagMs }) => lagMs / 1_000,
  ),
  perThread(
    {
      name: 'berth_event_loop_busy_seconds',
      type: 'counter',
      help: 'Time in which the event loop of the thread was not idle.',
    },
    ({ busyMs }) => busyMs / 1_000,
  ),
  perThread(
    { name: 'berth_messages', type: 'counter', help: 'Messages that arrived at actors of the thread.' },
    ({ messages }) => messages,
  ),
  perThread(
    { name: 'berth_open_asks', type: 'gauge', help: 'Asks of the thread that wait for an answer.' },
    ({ openAsks }) => openAsks,
  ),
  perThread(
    {
      name: 'berth_missed_deadlines',
      type: 'counter',
      help: 'Asks of the thread that got no answer in time.',
    },
    ({ missedDeadlines }) => missedDeadlines,
  ),
  perThread(
    { name: 'berth_crashes', type: 'counter', help: 'Crashes of actors and errors without a caller.' },
    ({ crashes }) => crashes,
  ),
  {
    name: 'berth_mailbox_messages',
    type: 'gauge',
    help: 'Messages that wait in the mailboxes of the actors at an address, or of a family.',
    samples: ({ system }) =>
      system.threads.flatMap(({ name, reading }) =>
        (reading?.actors ?? []).flatMap(({ address, waiting }) =>
          one(waiting, { thread: name, actor: address.replace(/:$/, '') }),
        ),
      ),
  },
  {
    name: 'berth_host_up',
    type: 'gauge',
    help: 'Whether the process host answers.',
    samples: ({ system }) => one(system.host ? 1 : 0),
  },
  {
    name: 'berth_host_runs',
    type: 'gauge',
    help: 'Runs in the ledger of the process host.',
    samples: ({ system }) => (system.host ? one(system.host.runs) : []),
  },
  {
    name: 'berth_notices_pending',
    type: 'gauge',
    help: 'Notices that wait for the target.',
    samples: ({ system }) =>
      system.notices.flatMap(({ pending, ...notice }, index) => one(pending, noticeLabels(notice, index))),
  },
  {
    name: 'berth_notices',
    type: 'counter',
    help: 'Notices delivered and given up, and attempts that failed.',
    samples: ({ system }) =>
      system.notices.flatMap((notice, index) =>
        NOTICE_RESULTS.flatMap((result) => one(notice[result], { ...noticeLabels(notice, index), result })),
      ),
  },
  {
    name: 'berth_store_bytes',
    type: 'gauge',
    help: 'Size of the store on disk.',
    samples: ({ system }) => one(system.storeBytes),
  },
  {
    name: 'berth_journal_bytes',
    type: 'gauge',
    help: 'Size of the event journal on disk.',
    samples: ({ system }) => one(system.journalBytes),
  },
];

/** All metrics of the daemon, in the order of the text. */
export const DAEMON_METRICS: readonly Row[] = [...SERVICE_METRICS, ...PROCESS_METRICS];
