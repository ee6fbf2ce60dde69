// State: none of its own; it updates the views. Rebuilt from: the registry's boot and the services' reports.
import type { EventRecord } from '../../protocol/events.ts';
import type { ViewSnapshot, ViewsProtocol } from '../../protocol/views.ts';
import { actor } from '../../runtime/actor.ts';
import type { StartTimes } from '../metrics/start_times.ts';
import type { EventFeed } from '../streams/event_feed.ts';
import type { LogStreams } from '../streams/log_streams.ts';
import type { MergedLogs } from '../streams/merged_logs.ts';
import type { ServiceViews } from './service_views.ts';

interface ViewTargets {
  views: ServiceViews;
  starts: StartTimes;
  logs: LogStreams;
  mergedLogs: MergedLogs;
  events: EventFeed<EventRecord>;
  /** Called after specs or states have changed. */
  onServicesChanged: () => void;
  /** Called after the states of agents have changed. */
  onAgentsChanged: () => void;
}

/** A refused message would be a change that is never shown, and handling one takes almost no time. */
const LIMITS = { mailbox: 1_000_000 };

/** The actor at `views`, on the thread of the front. */
export const serviceViewsActor = actor<ViewsProtocol, ViewTargets>(
  'views',
  ({ clock }, { views, starts, logs, mergedLogs, events, onServicesChanged, onAgentsChanged }) => ({
    snapshot({ text }) {
      const { specs, states }: ViewSnapshot = JSON.parse(text);
      views.retainOnly(new Set(specs.map(({ name }) => name)));
      views.setSpecs(specs);
      views.setStates(states);
      logs.endMissing((name) => views.spec(name) !== null);
      onServicesChanged();
      return null;
    },
    specs({ rows }) {
      views.setSpecs(rows);
      onServicesChanged();
      return null;
    },
    removed({ name }) {
      views.remove(name);
      starts.forget(name);
      logs.endMissing((other) => other !== name);
      onServicesChanged();
      return null;
    },
    states({ rows }) {
      for (const row of rows) starts.observe(views.state(row.name) !== null, row, clock.now());
      views.setStates(rows);
      // The last line of an ended process may lack its newline.
      for (const { name, process } of rows) {
        if (process) continue;
        logs.wake(name);
        mergedLogs.wake(name);
      }
      onServicesChanged();
      return null;
    },
    agents({ rows }) {
      views.setAgents(rows);
      onAgentsChanged();
      return null;
    },
    stats({ rows }) {
      views.setStats(rows);
      return null;
    },
    schedules({ rows }) {
      views.setSchedules(rows);
      return null;
    },
    events({ events: records }) {
      events.receive(records);
      return null;
    },
    grew({ name }) {
      logs.wake(name);
      mergedLogs.wake(name);
      return null;
    },
  }),
  LIMITS,
);
