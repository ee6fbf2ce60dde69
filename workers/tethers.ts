import { runTethersThread } from '../src/daemon/tethers_thread.ts';

void runTethersThread();
