import { gatewayActor } from '../src/gateway/actor.ts';
import { reportCrash } from '../src/log.ts';
import { runThread } from '../src/threads.ts';

void runThread(async (node) => {
  await node.start('gateway', gatewayActor, null);
}, reportCrash);
