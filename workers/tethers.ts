import { reportCrash } from '../src/daemon/daemon_log.ts';
import { setupTethers } from '../src/daemon/tethers_thread.ts';
import type { ThreadData } from '../src/daemon/thread_data.ts';
import { runThread } from '../src/daemon/thread_supervisor.ts';

void runThread((node, data) => setupTethers(node, data as ThreadData), reportCrash);
