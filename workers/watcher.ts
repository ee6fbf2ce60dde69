import { runWatcherThread } from '../src/daemon/watcher_thread.ts';

void runWatcherThread();
