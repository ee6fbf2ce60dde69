import { reportCrash } from '../src/daemon/daemon_log.ts';
import { setupServices } from '../src/daemon/services_thread.ts';
import type { ThreadData } from '../src/daemon/thread_data.ts';
import { runThread } from '../src/daemon/thread_supervisor.ts';

void runThread((node, data) => setupServices(node, data as ThreadData), reportCrash);
