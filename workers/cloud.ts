import { setupCloud } from '../src/daemon/cloud_thread.ts';
import { reportCrash } from '../src/daemon/daemon_log.ts';
import type { ThreadData } from '../src/daemon/thread_data.ts';
import { runThread } from '../src/daemon/thread_supervisor.ts';

void runThread((node, data) => setupCloud(node, data as ThreadData), reportCrash);
