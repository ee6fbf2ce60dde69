import { runGatewayThread } from '../src/daemon/gateway_thread.ts';

void runGatewayThread();
