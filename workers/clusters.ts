import { runClustersThread } from '../src/daemon/clusters_thread.ts';

void runClustersThread();
