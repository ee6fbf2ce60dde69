// Collects the readings for the metrics, and formats them as the client asks.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { narrowed, type Principal } from '../../protocol/grants.ts';
import { ALL_SAVINGS } from '../../protocol/savings.ts';
import { ALL_WORKLOADS } from '../../protocol/workload_selection.ts';
import type { AppContext } from '../api/app_context.ts';
import type { RequestContext } from '../api/handler.ts';
import { headersOf } from '../api/reply.ts';
import { workloadSlices } from '../views/workload_pages.ts';
import type { CloudReading, WorkloadCounts } from './cloud_metrics.ts';
import type { DaemonReading } from './daemon_metrics.ts';
import { type Metric, metricsText, PROMETHEUS_TYPE } from './open_metrics.ts';

/** What the daemon and its services are doing. */
export async function readDaemon(app: AppContext): Promise<DaemonReading> {
  const system = await app.readSystem();
  const { version, startedAt } = app.daemonInfo;
  return {
    ...{ version, startedAt, system },
    services: app.views.all(),
    starts: (name) => app.starts.of(name),
    requests: app.requests.rows(),
    openStreams: app.streams.open,
  };
}

/**
 * What the workloads and tethers are doing, as far as `principal` may see it. The front answers other
 * requests in between.
 */
export async function readCloud(app: AppContext, principal: Principal | null): Promise<CloudReading> {
  const viewer = narrowed(principal);
  const within = viewer && { within: viewer.scopes('viewer') };
  const { views } = app.cloud;
  const workloads: WorkloadCounts[] = [];
  for (const slice of workloadSlices(views, { ...ALL_WORKLOADS, ...within })) {
    for (const { id, json } of slice) {
      const asleep_seconds = views.times.asleepSeconds(id, performance.now());
      workloads.push({ ...JSON.parse(json), asleep_seconds });
    }
    await nextTurn();
  }
  const saved = await app.ref('workloads').ask('savings', ALL_SAVINGS);
  const wakes = views.times.wakesByCluster();
  if (!viewer) return { workloads, wakes, tethers: JSON.parse(views.tethers().toString()), savings: saved };
  return {
    workloads,
    wakes: wakes.filter(([clusterId]) => viewer.mayInCluster('viewer', clusterId)),
    tethers: JSON.parse(views.tethersWhere((place) => viewer.may('viewer', place)).toString()),
    savings: saved.filter(({ clusterId, namespace }) =>
      viewer.mayInNamespace('viewer', clusterId, namespace),
    ),
  };
}

const PROMETHEUS_HEADERS = headersOf(PROMETHEUS_TYPE);

/** The text as OpenMetrics, or in the older format for a client that asks for plain text alone. */
export function answerMetrics<R>(request: RequestContext, metrics: readonly Metric<R>[], reading: R): string {
  const isOpen = !request.accept.includes('text/plain') || request.accept.includes('openmetrics');
  if (!isOpen) request.headers = PROMETHEUS_HEADERS;
  return metricsText(metrics, reading, isOpen);
}
