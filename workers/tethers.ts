import { reportCrash } from '../src/log.ts';
import { setupTethers } from '../src/tethers.ts';
import { runThread } from '../src/threads.ts';
import type { ThreadData } from '../src/threads_data.ts';

void runThread((node, data) => setupTethers(node, data as ThreadData), reportCrash);
