// State: the records of all tethers and the ports of the pool that they hold (tether_records.ts). Rebuilt
// from: the store. The traffic since the start of the daemon is reported by each `tether:<id>`.
import type { TethersProtocol } from '../../protocol/tethers.ts';
import { actor } from '../../runtime/actor.ts';
import { TetherRecords, type TethersConfig } from './tether_records.ts';

/** `tethers`: docs/reference.md "Tethers". */
export const tethersActor = actor<TethersProtocol, TethersConfig>('tethers', async (context, config) => {
  const records = new TetherRecords(context, config);
  await records.load();
  return {
    boot: () => context.replyLater(records.boot()),
    create: ({ id: wantedId, ...input }) =>
      context.replyLater(
        records
          .create(input, wantedId)
          .then(({ id, localPort }) => ({ tether_id: id, local_port: localPort })),
      ),
    activate: ({ id }) =>
      context.replyLater(
        records.turn(id, async (tether) => {
          const local_port = await records.open(tether);
          await records.noteIfWorkloadGone(tether);
          return { tether_id: id, local_port, state: 'active' as const };
        }),
      ),
    deactivate: ({ id }) =>
      context.replyLater(
        records.turn(id, async (tether) => {
          await records.close(tether, false);
          return { ok: true as const };
        }),
      ),
    remove: ({ id }) =>
      context.replyLater(
        records.turn(id, async (tether) => {
          await records.remove(tether);
          return { removed: true as const, id };
        }),
      ),
    closeCluster: ({ clusterId }) => context.replyLater(records.removeAllOf(clusterId)),
    renewCluster: ({ clusterId }) => records.renewAllOf(clusterId),
    workloadSleeping: ({ workloadId, isSleeping }) => records.noteSleep(workloadId, isSleeping),
    revoked: ({ ids }) => context.replyLater(records.removeAll(ids)),
    listenerMissing: ({ id }) => context.replyLater(records.reopen(id).then(() => null)),
    stats({ id, numbers }) {
      records.onStats(id, numbers);
      return null;
    },
  };
});
