import { setupCloud } from '../src/cloud.ts';
import { reportCrash } from '../src/log.ts';
import { runThread } from '../src/threads.ts';
import type { ThreadData } from '../src/threads_data.ts';

void runThread((node, data) => setupCloud(node, data as ThreadData), reportCrash);
