import { runDoorsThread } from '../src/daemon/doors_thread.ts';

void runDoorsThread();
