import { reportCrash } from '../src/daemon/daemon_log.ts';
import { setupGateway } from '../src/daemon/gateway_thread.ts';
import { runThread } from '../src/daemon/thread_supervisor.ts';

void runThread(setupGateway, reportCrash);
