// Cloud events as text.
import type { CloudEvent } from '../client/records.ts';

/** The types that a person should look at. */
const ALERTS: ReadonlySet<string> = new Set<CloudEvent['type']>([
  'operation.failed',
  'operation.interrupted',
  'workload.failed',
  'workload.conflict',
  'workload.left',
  'cluster.unreachable',
  'cluster.refused',
  'cluster.expiring',
  'events.lost',
]);

/** Whether a person should look at an event of `type`. */
export const isAlert = (type: CloudEvent['type']): boolean => ALERTS.has(type);

/** What an event is about: `cluster/namespace/workload`, or the id of a tether. */
export const cloudEventTarget = ({ cluster, namespace, workload, tether_id }: CloudEvent): string =>
  [cluster, namespace, workload].filter((part) => part !== null).join('/') || (tether_id ?? '');

/** Who asked for what, how it ended unless well, and why. */
export const cloudEventParts = ({ who, action, result, reason }: CloudEvent): string[] =>
  [action === null ? '' : `${action} by ${who}`, result === 'ok' ? '' : `(${result})`, reason ?? ''].filter(
    Boolean,
  );
