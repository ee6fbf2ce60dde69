import { reportCrash } from '../src/log.ts';
import { setupServices } from '../src/services.ts';
import { runThread } from '../src/threads.ts';
import type { ThreadData } from '../src/threads_data.ts';

void runThread((node, data) => setupServices(node, data as ThreadData), reportCrash);
