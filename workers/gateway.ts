import { reportCrash } from '../src/daemon/daemon_log.ts';
import { runThread } from '../src/daemon/thread_supervisor.ts';
import { gatewayActor } from '../src/gateway/gateway_actor.ts';

void runThread(async (node) => {
  await node.start('gateway', gatewayActor, null);
}, reportCrash);
