// The ids of SPDY streams. The node spreads streams over its workers by their id, see drain_check.ts.
import { TETHER } from '../../settings/cloud_limits.ts';
import { NODE_WORKERS } from './drain_check.ts';

/** The ids of the streams of a connection, in pairs: they grow, and are odd. */
export class StreamIds {
  private next = 1;
  private count = 0;

  /** Whether the connection has had all the streams that it may have. */
  get isExhausted(): boolean {
    return this.count >= TETHER.maxStreamsPerConnection;
  }

  /** Ids of which that for data belongs to `worker` of the node. */
  take(worker: number): { errorId: number; dataId: number } {
    const errorId = this.next;
    let dataId = errorId + 2;
    while (dataId % NODE_WORKERS !== worker) dataId += 2;
    this.next = dataId + 2;
    this.count += 1;
    return { errorId, dataId };
  }
}
