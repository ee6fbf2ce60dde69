import { runServicesThread } from '../src/daemon/services_thread.ts';

void runServicesThread();
