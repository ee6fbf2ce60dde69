// State: none of its own; it updates the views. Rebuilt from: the messages of the cloud's actors at their
// start.
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import { actor } from '../../runtime/actor.ts';
import { unpackRows } from '../../runtime/msgpack.ts';
import type { CloudViews } from './cloud_views.ts';

/** A refused message would be a change that is never shown, and handling one takes almost no time. */
const LIMITS = { mailbox: 1_000_000 };

/** The actor at `cloudviews`, on the thread of the front. */
export const cloudViewsActor = actor<CloudViewsProtocol, CloudViews>(
  'cloudviews',
  (_context, views) => {
    const done = (_updated: unknown): null => null;
    return {
      unavailable: ({ code, reason, hint, holder }) =>
        done(views.markUnavailable(code, reason, hint, holder)),
      available: () => done(views.markAvailable()),
      clusters: ({ rows, all }) => done(views.setClusters(rows, all)),
      clusterRemoved: ({ id }) => done(views.removeCluster(id)),
      workloads: ({ rows }) => done(views.setWorkloads(unpackRows(rows))),
      workloadsRemoved: ({ ids }) => done(views.removeWorkloads(ids)),
      workloadsStale: ({ ids, staleSince }) => done(views.setStaleSince(ids, staleSince)),
      workloadsRetained: ({ clusterId, ids }) => done(views.retainWorkloads(clusterId, ids)),
      tethers: ({ rows, all }) => done(views.setTethers(rows, all)),
      tethersRemoved: ({ ids }) => done(views.removeTethers(ids)),
      principals: (rows) => done(views.principals.set(rows)),
      events: ({ events }) => done(views.onEvents(events)),
    };
  },
  LIMITS,
);
