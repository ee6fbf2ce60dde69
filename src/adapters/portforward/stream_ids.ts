// The ids of SPDY streams. The node distributes streams over its workers by id; see drain_check.ts.
import { TETHER } from '../../settings/cloud_limits.ts';
import { NODE_WORKERS } from './drain_check.ts';

/** The stream ids of a connection, in pairs: they increase, and are odd. */
export class StreamIds {
  private next = 1;
  private count = 0;

  /** Whether the connection has had as many streams as allowed. */
  get isExhausted(): boolean {
    return this.count >= TETHER.maxStreamsPerConnection;
  }

  /** Two ids. The one for data belongs to `worker` of the node. */
  take(worker: number): { errorId: number; dataId: number } {
    const errorId = this.next;
    let dataId = errorId + 2;
    while (dataId % NODE_WORKERS !== worker) dataId += 2;
    this.next = dataId + 2;
    this.count += 1;
    return { errorId, dataId };
  }
}
