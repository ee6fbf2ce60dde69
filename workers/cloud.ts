import { runCloudThread } from '../src/daemon/cloud_thread.ts';

void runCloudThread();
